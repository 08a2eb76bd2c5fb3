package operator

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	materializev1alpha2 "github.com/fairlead/fairlead/api/materialize/v1alpha2"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	sailoperatorv1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// NewScheme knows the kinds that the passages work with, and no others: a client then refuses the rest.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(appsv1.SchemeGroupVersion, &appsv1.Deployment{}, &appsv1.DeploymentList{},
		&appsv1.DaemonSet{}, &appsv1.DaemonSetList{}, &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{},
		&appsv1.StatefulSet{}, &appsv1.StatefulSetList{})
	metav1.AddToGroupVersion(scheme, appsv1.SchemeGroupVersion)
	scheme.AddKnownTypes(batchv1.SchemeGroupVersion, &batchv1.CronJob{}, &batchv1.CronJobList{}, &batchv1.Job{}, &batchv1.JobList{})
	metav1.AddToGroupVersion(scheme, batchv1.SchemeGroupVersion)
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Secret{}, &corev1.SecretList{}, &corev1.Pod{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	builder := runtime.NewSchemeBuilder(
		sailoperatorv1.AddToScheme, materializev1alpha2.AddToScheme, kumav1alpha1.AddToScheme, fairleadv1alpha1.AddToScheme, policyv1alpha1.AddToScheme,
		workv1alpha1.AddToScheme, workv1alpha2.AddToScheme, clusterv1alpha1.AddToScheme,
	)
	return scheme, builder.AddToScheme(scheme)
}

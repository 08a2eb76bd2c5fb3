package inventory

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

const (
	kindDeployment = "Deployment"
	kindNamespace  = "Namespace"
	kindPod        = "Pod"
)

// CacheOptions cache all Deployments, trimmed to the fields that are read, and the other workloads that the package usage reads.
func CacheOptions() map[client.Object]cache.ByObject {
	return usage.TemplateCacheOptions(map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: {
			Label: labels.Everything(), Field: fields.Everything(),
			Transform: func(object any) (any, error) {
				if d, ok := object.(*appsv1.Deployment); ok {
					return trimDeployment(d), nil
				}
				return object, nil
			},
		},
	})
}

// trimDeployment is a copy with the fields that decide on the revision of a Deployment, its rollout state and its mark.
func trimDeployment(d *appsv1.Deployment) *appsv1.Deployment {
	s := &appsv1.Deployment{
		TypeMeta: d.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name, Namespace: d.Namespace, UID: d.UID,
			ResourceVersion: d.ResourceVersion, Generation: d.Generation,
			CreationTimestamp: d.CreationTimestamp, DeletionTimestamp: d.DeletionTimestamp,
			Annotations: pick(d.Annotations, v1.AnnotationMigration, v1.AnnotationSkipMigration,
				v1.AnnotationReadinessTimeout, v1.AnnotationMigrationBatch),
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: d.Spec.Replicas,
			Paused:   d.Spec.Paused,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
				Labels:      usage.Labels(d.Spec.Template.Labels),
				Annotations: pick(d.Spec.Template.Annotations, v1.LabelSidecarInject),
			}},
		},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: d.Status.ObservedGeneration,
			Replicas:           d.Status.Replicas,
			UpdatedReplicas:    d.Status.UpdatedReplicas,
			ReadyReplicas:      d.Status.ReadyReplicas,
			AvailableReplicas:  d.Status.AvailableReplicas,
		},
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing {
			condition.Message = ""
			s.Status.Conditions = []appsv1.DeploymentCondition{condition}
		}
	}
	return s
}

func pick(from map[string]string, keys ...string) map[string]string {
	var picked map[string]string
	for _, key := range keys {
		if value, found := from[key]; found {
			if picked == nil {
				picked = map[string]string{}
			}
			picked[key] = value
		}
	}
	return picked
}

// equalExceptVersion tells whether two trimmed Deployments differ at most in their resource version.
func equalExceptVersion(a, b *appsv1.Deployment) bool {
	if a.UID != b.UID || a.Generation != b.Generation {
		return false
	}
	c := *b
	c.ResourceVersion = a.ResourceVersion
	return equality.Semantic.DeepEqual(a, &c)
}

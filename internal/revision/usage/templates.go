package usage

import (
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// templateKind is a kind of workload: its objects have a pod template.
type templateKind struct {
	kind   string
	object client.Object
	list   client.ObjectList
	// only selects those to read.
	only labels.Selector
}

var templateKinds = []templateKind{
	{"CronJob", &batchv1.CronJob{}, &batchv1.CronJobList{}, labels.Everything()},
	{"DaemonSet", &appsv1.DaemonSet{}, &appsv1.DaemonSetList{}, labels.Everything()},
	{"Deployment", &appsv1.Deployment{}, &appsv1.DeploymentList{}, labels.Everything()},
	{"Job", &batchv1.Job{}, &batchv1.JobList{}, labels.Everything()},
	{"ReplicaSet", &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{}, notOfDeployment},
	{"StatefulSet", &appsv1.StatefulSet{}, &appsv1.StatefulSetList{}, labels.Everything()},
}

// notOfDeployment leaves out the ReplicaSets that Deployments have made. There are up to ten of them for each, a rollout writes
// them a dozen times, and none counts: the template of the Deployment says what comes next.
var notOfDeployment = withoutLabel(appsv1.DefaultDeploymentUniqueLabelKey)

func withoutLabel(key string) labels.Selector {
	requirement, err := labels.NewRequirement(key, selection.DoesNotExist, nil)
	if err != nil {
		panic(err)
	}
	return labels.NewSelector().Add(*requirement)
}

// Template is a workload as another package caches it.
type Template interface {
	// PodTemplate has the labels and annotations of its pod template.
	PodTemplate() metav1.ObjectMeta
}

// TemplateCacheOptions are how to cache the workloads whose pod templates a Tracker reads. The kinds in own are cached as
// given there, which must keep the Labels and Annotations of the template and all that decides on whether it can still run.
func TemplateCacheOptions(own map[client.Object]cache.ByObject) map[client.Object]cache.ByObject {
	options := map[client.Object]cache.ByObject{}
	var known []reflect.Type
	for object, by := range own {
		options[object] = by
		known = append(known, reflect.TypeOf(object))
	}
	for _, k := range templateKinds {
		if !slices.Contains(known, reflect.TypeOf(k.object)) {
			options[k.object] = cache.ByObject{Transform: trimTemplate, Label: k.only, Field: fields.Everything()}
		}
	}
	return options
}

// trimTemplate keeps the name of a workload and, as its labels and annotations, those of its pod template that the rules read. An
// object of the kind itself would take five times the memory, empty.
func trimTemplate(object any) (any, error) {
	full, ok := object.(client.Object)
	if _, trimmed := object.(*metav1.PartialObjectMetadata); !ok || trimmed {
		return object, nil
	}
	template := podTemplate(full)
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: full.GetName(), Namespace: full.GetNamespace(), ResourceVersion: full.GetResourceVersion(),
		Labels: Labels(template.Labels), Annotations: templateAnnotations.pick(template.Annotations),
	}}, nil
}

var templateAnnotations = newPicker(v1.AnnotationRevision)

// TemplateLabels are the labels, of those that the rules read, of the pods that a workload will have, trimmed or not.
func TemplateLabels(workload any) map[string]string { return Labels(podTemplate(workload).Labels) }

// podTemplate has the labels and annotations of the pods that a workload will have, trimmed or not; none for one that makes no
// more.
func podTemplate(workload any) metav1.ObjectMeta {
	switch w := workload.(type) {
	case Template:
		return w.PodTemplate()
	case *metav1.PartialObjectMetadata:
		return w.ObjectMeta
	case *batchv1.CronJob:
		return w.Spec.JobTemplate.Spec.Template.ObjectMeta
	case *appsv1.DaemonSet:
		return w.Spec.Template.ObjectMeta
	case *appsv1.Deployment:
		return w.Spec.Template.ObjectMeta
	case *batchv1.Job:
		if !isFinished(w) {
			return w.Spec.Template.ObjectMeta
		}
	case *appsv1.ReplicaSet:
		// Another controller, such as that of a Rollout, says itself what comes next.
		if metav1.GetControllerOf(w) == nil {
			return w.Spec.Template.ObjectMeta
		}
	case *appsv1.StatefulSet:
		return w.Spec.Template.ObjectMeta
	}
	return metav1.ObjectMeta{}
}

func isFinished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

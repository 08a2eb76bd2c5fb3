package usage

import (
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// CacheOptions are how to cache the kinds that a Tracker reads by the thousand: as little of them as the rules need, and
// all of them, whatever else the cache selects by default.
func CacheOptions() map[client.Object]cache.ByObject {
	strip := stripper()
	return map[client.Object]cache.ByObject{
		MetadataOf(kindNamespace): {Transform: strip, Label: labels.Everything(), Field: fields.Everything()},
		MetadataOf(kindPod):       {Transform: strip, Label: labels.Everything(), Field: notTerminated},
	}
}

// MetadataOf is an object of the core group of which only the metadata is read.
func MetadataOf(kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return object
}

// What the rules read.
var (
	keptLabels      = []string{v1.LabelRevision, v1.LabelInjection, v1.LabelSidecarInject}
	keptAnnotations = []string{v1.AnnotationRevision, v1.AnnotationSkipMigration}
)

// Labels are those of a namespace, a pod or a pod template that the rules read.
func Labels(all map[string]string) map[string]string { return sharedLabels.pick(all) }

var sharedLabels = newPicker(keptLabels...)

// stripper makes a copy with what the rules read, and the workload of a pod in place of its owners. A copy, because an object
// from a list would keep the whole list in memory.
func stripper() toolscache.TransformFunc {
	annotation := newPicker(keptAnnotations...)
	return func(object any) (any, error) {
		full, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return object, nil
		}
		slim := &metav1.PartialObjectMetadata{
			TypeMeta: full.TypeMeta,
			ObjectMeta: metav1.ObjectMeta{
				Name: full.Name, Namespace: full.Namespace,
				UID: full.UID, ResourceVersion: full.ResourceVersion, DeletionTimestamp: full.DeletionTimestamp,
				Labels:      Labels(full.Labels),
				Annotations: annotation.pick(full.Annotations),
			},
		}
		if workload := WorkloadOf(full); workload != nil {
			slim.OwnerReferences = []metav1.OwnerReference{*workload}
		}
		return slim, nil
	}
}

// WorkloadOf is the workload that a pod belongs to, or nil for one on its own. In place of the ReplicaSet of a Deployment
// it is the Deployment, which gives its ReplicaSets its own name and the hash that is on their pods.
func WorkloadOf(pod metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return owner
	}
	hash := pod.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]
	if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" {
		return &metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: "Deployment", Name: name, Controller: ptr.To(true)}
	}
	return owner
}

// picker takes a few keys out of maps. Results that are equal are one map: thousands of pods say the same, and each with
// a map of its own would take half as much memory again. Like all that is cached, it must not be written to.
type picker struct {
	keys []string
	mu   sync.Mutex
	made map[picked]map[string]string
}

// picked has the value, or nothing, of each key of a picker.
type picked [3]struct {
	value string
	found bool
}

// maxShared bounds what a picker remembers of values that may not be in use any more.
const maxShared = 1000

func newPicker(keys ...string) *picker {
	return &picker{keys: keys, made: map[picked]map[string]string{}}
}

func (p *picker) pick(from map[string]string) map[string]string {
	var values picked
	for i, key := range p.keys {
		values[i].value, values[i].found = from[key]
	}
	if values == (picked{}) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if shared, ok := p.made[values]; ok {
		return shared
	}
	picked := map[string]string{}
	for i, key := range p.keys {
		if values[i].found {
			picked[key] = values[i].value
		}
	}
	if len(p.made) == maxShared {
		clear(p.made)
	}
	p.made[values] = picked
	return picked
}

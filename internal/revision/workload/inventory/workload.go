package inventory

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Workload is a workload that can be moved: the fields that decide on its revision, its rollout state and its mark. It is
// shared and must not be changed.
type Workload struct {
	Kind string
	metav1.ObjectMeta
	// PodLabels and PodAnnotations are those of its pod template.
	PodLabels, PodAnnotations map[string]string
	// Gateway is that of the Kubernetes Gateway API whose pods it has, or empty. Istiod makes such a workload.
	Gateway string
	// Replicas is how many pods it wants: those of its spec, or one for each node that a DaemonSet runs on.
	Replicas int32
	// Paused is set while the controller of a Deployment replaces no pods.
	Paused bool
	// OnDelete is set where a changed pod template replaces no pods: whoever wants new ones deletes the old ones.
	OnDelete bool
	// Partition is the ordinal of a StatefulSet below which a changed pod template replaces no pods.
	Partition int32
	// Ordered is set where the controller of a StatefulSet waits for each pod before it goes on, also for one that it would
	// replace.
	Ordered bool
	Rollout Rollout
}

// Rollout is how far the controller of a workload is with its pods, as its status says.
type Rollout struct {
	// ObservedGeneration is that of the workload when its controller wrote the status.
	ObservedGeneration int64
	// Replicas are all pods, Updated those of the current pod template.
	Replicas, Updated, Ready, Available int32
	// Progressing is the condition of that type of a Deployment, or nil.
	Progressing *Progressing
}

// Progressing is the condition by which a Deployment reports when a rollout ended.
type Progressing struct {
	Status     corev1.ConditionStatus
	Reason     string
	LastUpdate metav1.Time
}

const labelGateway = "gateway.networking.k8s.io/gateway-name"

// From is a workload of what decides on it, or nil for an object of another kind.
func From(object any) *Workload {
	switch o := object.(type) {
	case *Workload:
		return o
	case *appsv1.Deployment:
		return fromDeployment(o)
	case *appsv1.StatefulSet:
		return fromStatefulSet(o)
	case *appsv1.DaemonSet:
		return fromDaemonSet(o)
	}
	return nil
}

func fromDeployment(d *appsv1.Deployment) *Workload {
	w := newWorkload(kindDeployment, d, d.Spec.Template)
	w.Replicas, w.Paused = ptr.Deref(d.Spec.Replicas, 1), d.Spec.Paused
	w.Rollout = Rollout{
		ObservedGeneration: d.Status.ObservedGeneration,
		Replicas:           d.Status.Replicas,
		Updated:            d.Status.UpdatedReplicas,
		Ready:              d.Status.ReadyReplicas,
		Available:          d.Status.AvailableReplicas,
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			w.Rollout.Progressing = &Progressing{c.Status, c.Reason, c.LastUpdateTime}
		}
	}
	return w
}

func fromStatefulSet(s *appsv1.StatefulSet) *Workload {
	w := newWorkload(kindStatefulSet, s, s.Spec.Template)
	w.Replicas, w.Ordered = ptr.Deref(s.Spec.Replicas, 1), s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	w.OnDelete = s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && !w.OnDelete {
		w.Partition = ptr.Deref(rolling.Partition, 0)
	}
	w.Rollout = Rollout{
		ObservedGeneration: s.Status.ObservedGeneration,
		Replicas:           s.Status.Replicas,
		Updated:            s.Status.UpdatedReplicas,
		Ready:              s.Status.ReadyReplicas,
		Available:          s.Status.AvailableReplicas,
	}
	return w
}

func fromDaemonSet(d *appsv1.DaemonSet) *Workload {
	w := newWorkload(kindDaemonSet, d, d.Spec.Template)
	w.Replicas, w.OnDelete = d.Status.DesiredNumberScheduled, d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	w.Rollout = Rollout{
		ObservedGeneration: d.Status.ObservedGeneration,
		Replicas:           d.Status.CurrentNumberScheduled,
		Updated:            d.Status.UpdatedNumberScheduled,
		Ready:              d.Status.NumberReady,
		Available:          d.Status.NumberAvailable,
	}
	return w
}

func newWorkload(kind string, o metav1.Object, template corev1.PodTemplateSpec) *Workload {
	return &Workload{
		Kind: kind,
		ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(),
			ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
			CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
			Annotations: pick(o.GetAnnotations(), v1.AnnotationMigration, v1.AnnotationSkipMigration,
				v1.AnnotationReadinessTimeout, v1.AnnotationMigrationBatch),
		},
		PodLabels:      usage.Labels(template.Labels),
		PodAnnotations: pick(template.Annotations, v1.LabelSidecarInject, v1.AnnotationRevision),
		Gateway:        template.Labels[labelGateway],
	}
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

var _ usage.Template = &Workload{}

// PodTemplate has the labels and annotations of its pods.
func (w *Workload) PodTemplate() metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: w.PodLabels, Annotations: w.PodAnnotations}
}

// Owner names the workload as the owner of its pods.
func (w *Workload) Owner() Owner {
	return Owner{appsv1.SchemeGroupVersion.String(), w.Kind, w.Namespace, w.Name}
}

// Reference is the object of the workload without its content, such as for an event.
func (w *Workload) Reference() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, UID: w.UID}}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(w.Kind))
	return object
}

// NewObject is an object of the workload's kind and name, to be read from the API server.
func (w *Workload) NewObject() client.Object {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == w.Kind })
	object := kinds[i].object.DeepCopyObject().(client.Object)
	object.SetNamespace(w.Namespace)
	object.SetName(w.Name)
	return object
}

// key identifies a workload in the Tracker.
type key struct {
	types.NamespacedName
	kind string
}

func (w *Workload) key() key { return key{nameOf(w), w.Kind} }

func (o Owner) key() key {
	return key{types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, o.Kind}
}

// isRollingOut tells whether the controller of a workload is replacing pods, and has not given up.
func (w *Workload) isRollingOut() bool {
	r := w.Rollout
	return !w.hasGivenUp() && (r.ObservedGeneration < w.Generation || r.Updated != w.Replicas || r.Replicas != w.Replicas ||
		r.Ready != w.Replicas || r.Available != w.Replicas)
}

func (w *Workload) hasGivenUp() bool {
	return w.Rollout.Progressing != nil && w.Rollout.Progressing.Status == corev1.ConditionFalse
}

// equalExceptRollout tells whether two workloads differ at most in how far their rollout is, and in their resource version.
func equalExceptRollout(a, b *Workload) bool {
	if a.UID != b.UID || a.Generation != b.Generation {
		return false
	}
	c := *b
	c.Rollout, c.ResourceVersion = a.Rollout, a.ResourceVersion
	return equality.Semantic.DeepEqual(a, &c)
}

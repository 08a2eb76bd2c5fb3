package work

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
)

// Observed is a Work, and the state of the hub that it depends on.
type Observed struct {
	// Hub is the ID of the hub.
	Hub  string
	Work *workv1alpha1.Work
	// Cluster is the one that the Work is for, nil if it has been deleted.
	Cluster *clusterv1alpha1.Cluster
	// Connected holds when the operator has a client for the cluster.
	Connected bool
	// Binding is that of a Work that is being deleted, nil if it is gone.
	Binding *model.Binding
}

// Object is one manifest of a Work, and its object in the member. It is read only when Hold is nil.
type Object struct {
	Ordinal  int
	Manifest *unstructured.Unstructured
	// Live is the object in the member, nil if there is none.
	Live *unstructured.Unstructured
	// Removed is a Job as it was last, if the operator saw that it was removed.
	Removed *unstructured.Unstructured
	// Original is the object before its takeover. It is read only to be restored, and nil if the takeover changed nothing.
	Original *unstructured.Unstructured
	// Autoscaled holds when an autoscaler of the member decides on the replicas.
	Autoscaled bool
	// Restores is how often drift was reverted within restoreWindow.
	Restores int
}

// observeHub reads the cluster of a Work, and the binding of a Work that is being deleted.
func (r *reconciler) observeHub(ctx context.Context, work *workv1alpha1.Work, cluster string, connected bool) (Observed, error) {
	o := Observed{Hub: r.hub, Work: work, Connected: connected}
	var err error
	o.Cluster, err = kube.GetIfExists(ctx, r.client, client.ObjectKey{Name: cluster}, &clusterv1alpha1.Cluster{})
	if err != nil || work.DeletionTimestamp.IsZero() {
		return o, err
	}
	o.Binding, err = bindingOf(ctx, r.client, work)
	return o, err
}

// bindingOf a Work, nil if it is gone.
func bindingOf(ctx context.Context, reader client.Reader, work *workv1alpha1.Work) (*model.Binding, error) {
	for _, request := range model.BindingRequests(ctx, work) {
		return model.GetBinding(ctx, reader, request.NamespacedName)
	}
	return nil, nil
}

// observeMember reads the object of one manifest in the member.
func (r *reconciler) observeMember(ctx context.Context, m *member.Client, work *workv1alpha1.Work, ordinal int) (Object, error) {
	restores := r.driftLimiter.Recent(work.UID, r.now(), restoreWindow)
	object := Object{Ordinal: ordinal, Manifest: &unstructured.Unstructured{}, Restores: len(restores)}
	if err := object.Manifest.UnmarshalJSON(work.Spec.Workload.Manifests[ordinal].Raw); err != nil {
		return object, fmt.Errorf("read manifest %d of Work %s/%s: %w", ordinal, work.Namespace, work.Name, err)
	}
	if !work.DeletionTimestamp.IsZero() {
		return object, r.observeReleased(ctx, m, work, &object)
	}
	if err := object.Observe(ctx, m); err != nil {
		return object, err
	}
	// Not before a read has succeeded: the watch of a kind that may not be read fails for ever.
	return object, m.Watch(object.Manifest.GroupVersionKind())
}

// Observe reads the live object, and whether it is autoscaled.
func (o *Object) Observe(ctx context.Context, m *member.Client) (err error) {
	if o.Live, err = m.Get(ctx, o.Manifest); err != nil {
		return err
	}
	if o.Live == nil {
		o.Removed = m.RemovedJob(o.Manifest)
	}
	o.Autoscaled, err = m.IsAutoscaled(ctx, o.Manifest, o.Live)
	return err
}

// observeReleased reads an object whose Work is being deleted, and its original if that is to be restored.
func (r *reconciler) observeReleased(ctx context.Context, m *member.Client, work *workv1alpha1.Work, object *Object) (err error) {
	if object.Live, err = m.Get(ctx, object.Manifest); err != nil || object.Live == nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return err
	}
	if work.Annotations[model.AnnotationRestore] != "true" {
		return nil
	}
	if object.Original, err = r.originals.load(ctx, work, object.Ordinal); err != nil || object.Original == nil {
		return err
	}
	object.Autoscaled, err = m.IsAutoscaled(ctx, object.Live, object.Original)
	return err
}

package work

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Observed is a Work, and its objects in the member.
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
	// Objects are one for each manifest of the Work. They are read only when Hold is nil.
	Objects []Object
}

// Object is one manifest of a Work, and its object in the member.
type Object struct {
	Manifest *unstructured.Unstructured
	// Live is the object in the member, nil if there is none.
	Live *unstructured.Unstructured
	// Original is the object before its takeover. It is read only to be restored, and nil if the takeover changed nothing.
	Original *unstructured.Unstructured
	// Autoscaled holds when an autoscaler of the member decides on the replicas.
	Autoscaled bool
	// Restores are when drift was reverted lately.
	Restores []time.Time
}

// observeHub reads the cluster of a Work, and the binding of a Work that is being deleted.
func (r *reconciler) observeHub(ctx context.Context, work *workv1alpha1.Work, cluster string, connected bool) (Observed, error) {
	o := Observed{Hub: r.hub, Work: work, Cluster: &clusterv1alpha1.Cluster{}, Connected: connected}
	if err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, o.Cluster); client.IgnoreNotFound(err) != nil {
		return o, err
	} else if err != nil {
		o.Cluster = nil
	}
	if work.DeletionTimestamp.IsZero() {
		return o, nil
	}
	for _, key := range model.BindingRequests(ctx, work) {
		var err error
		if o.Binding, err = model.GetBinding(ctx, r.client, key.Namespace, key.Name); err != nil {
			return o, err
		}
	}
	return o, nil
}

// observeMember reads the object of one manifest in the member.
func (r *reconciler) observeMember(ctx context.Context, m *member.Client, o *Observed, ordinal int) (Object, error) {
	object := Object{Manifest: &unstructured.Unstructured{}, Restores: r.driftLimiter.recent(o.Work.UID, r.now())}
	if err := object.Manifest.UnmarshalJSON(o.Work.Spec.Workload.Manifests[ordinal].Raw); err != nil {
		return object, fmt.Errorf("read manifest %d of Work %s/%s: %w", ordinal, o.Work.Namespace, o.Work.Name, err)
	}
	if !o.Work.DeletionTimestamp.IsZero() {
		return object, r.observeReleased(ctx, m, o.Work, ordinal, &object)
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
	o.Autoscaled, err = m.IsAutoscaled(ctx, o.Manifest, o.Live)
	return err
}

// observeReleased reads an object whose Work is being deleted, and its original if that is to be restored.
func (r *reconciler) observeReleased(ctx context.Context, m *member.Client, work *workv1alpha1.Work, ordinal int, object *Object) (err error) {
	if object.Live, err = m.Get(ctx, object.Manifest); err != nil || object.Live == nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return err
	}
	if work.Annotations[model.AnnotationRestore] != "true" {
		return nil
	}
	if object.Original, err = r.originals.load(ctx, work, ordinal); err != nil || object.Original == nil {
		return err
	}
	object.Autoscaled, err = m.IsAutoscaled(ctx, object.Live, object.Original)
	return err
}

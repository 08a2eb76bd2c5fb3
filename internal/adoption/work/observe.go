package work

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
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
	// Binding is that of a Work that is being deleted, or whose template has changed; nil if it is gone.
	Binding *model.Binding
	// Manifests are those of the Work that leave out the values of a Secret, with these, by ordinal. They are read from the template
	// when something could be written, and Changed is a Secret that is gone or has other values than those that the Work is for.
	Manifests map[int]*unstructured.Unstructured
	Changed   *unstructured.Unstructured
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

// observeHub reads the cluster of a Work, what its manifests leave out, and the binding of a Work that is being deleted.
func (r *reconciler) observeHub(ctx context.Context, work *workv1alpha1.Work, cluster string, connected bool) (Observed, error) {
	defer kube.Span(&ctx, kube.StageObserve)()
	o := Observed{Hub: r.hub, Work: work, Connected: connected}
	var err error
	o.Cluster, err = kube.GetIfExists(ctx, r.client, client.ObjectKey{Name: cluster}, &clusterv1alpha1.Cluster{})
	if err != nil {
		return o, err
	}
	if work.DeletionTimestamp.IsZero() && Hold(o) == nil {
		if err := r.observeContent(ctx, &o); err != nil {
			return o, err
		}
	}
	if !work.DeletionTimestamp.IsZero() || o.Changed != nil {
		o.Binding, err = bindingOf(ctx, r.client, work)
	}
	return o, err
}

// observeContent reads the values that the manifests of a Work leave out. Nobody who does not know the values can name a Secret in
// a Work: the digest would be wrong.
func (r *reconciler) observeContent(ctx context.Context, o *Observed) error {
	for i, raw := range o.Work.Spec.Workload.Manifests {
		if !bytes.Contains(raw.Raw, []byte(manifest.AnnotationContent)) {
			continue
		}
		m, err := o.manifest(i)
		if err != nil {
			return err
		}
		template := &unstructured.Unstructured{}
		template.SetGroupVersionKind(m.GroupVersionKind())
		template, err = kube.GetIfExists(ctx, r.reader, client.ObjectKeyFromObject(m), template)
		if err != nil {
			return fmt.Errorf("get %s: %w", model.ObjectOf(m), err)
		}
		var content map[string]any
		if template != nil && !policy.IsExcluded(model.TemplateOf(m)) {
			content = manifest.ContentOf(template)
		}
		whole := manifest.WithContent(m, content)
		if whole == nil {
			o.Changed = m
			return nil
		}
		if o.Manifests == nil {
			o.Manifests = map[int]*unstructured.Unstructured{}
		}
		o.Manifests[i] = whole
	}
	return nil
}

// bindingOf a Work, nil if it is gone.
func bindingOf(ctx context.Context, reader client.Reader, work *workv1alpha1.Work) (*model.Binding, error) {
	for _, request := range model.BindingRequests(ctx, work) {
		return model.GetBinding(ctx, reader, request.NamespacedName)
	}
	return nil, nil
}

// manifest is one of those of the Work, with the values that it leaves out if these were read.
func (o Observed) manifest(ordinal int) (*unstructured.Unstructured, error) {
	if whole := o.Manifests[ordinal]; whole != nil {
		return whole, nil
	}
	m := &unstructured.Unstructured{}
	if err := m.UnmarshalJSON(o.Work.Spec.Workload.Manifests[ordinal].Raw); err != nil {
		return m, fmt.Errorf("read manifest %d of Work %s/%s: %w", ordinal, o.Work.Namespace, o.Work.Name, err)
	}
	return m, nil
}

// observeMember reads the object of one manifest in the member.
func (r *reconciler) observeMember(ctx context.Context, m *member.Client, o Observed, ordinal int) (Object, error) {
	defer kube.Span(&ctx, kube.StageObserve)()
	work := o.Work
	restores := r.driftLimiter.Recent(work.UID, r.now(), restoreWindow)
	object := Object{Ordinal: ordinal, Restores: len(restores)}
	var err error
	if object.Manifest, err = o.manifest(ordinal); err != nil {
		return object, err
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

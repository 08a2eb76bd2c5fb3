package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/rollout/environmentd"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// Reader finds the objects of an environment.
type Reader interface {
	// Owned returns all objects that a Materialize controls.
	Owned(context.Context, *v1alpha2.Materialize) ([]*unstructured.Unstructured, error)
	// Live returns the object of a kind and a name, with any owner or none; nil if there is no object.
	Live(context.Context, schema.GroupVersionKind, client.ObjectKey) (*unstructured.Unstructured, error)
}

// LeaderReader reads the status of an environmentd.
type LeaderReader interface {
	Status(context.Context, environmentd.Address) (v1alpha2.LeaderStatus, error)
}

// cacheReader reads owned objects from a cache, and others from the API server.
type cacheReader struct {
	objects client.Reader
	live    client.Reader
	kinds   func() []schema.GroupVersionKind
}

// ownerIndex indexes objects by the UID of their Materialize.
const ownerIndex = "owner"

func (r cacheReader) Owned(ctx context.Context, m *v1alpha2.Materialize) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, kind := range r.kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.objects.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingFields{ownerIndex: string(m.UID)},
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all, nil
}

func (r cacheReader) Live(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	return kube.GetIfExists(ctx, r.live, key, newUnstructured(kind))
}

// OwnedKinds are the kinds of owned objects. That of cert-manager may not be installed.
func OwnedKinds() []schema.GroupVersionKind {
	return append(slices.Clone(builtinKinds), objects.KindCertificate)
}

// NewReader returns a Reader for commands, which finds owned objects by label.
func NewReader(reader client.Reader) Reader { return labelReader{reader} }

type labelReader struct{ reader client.Reader }

func (r labelReader) Owned(ctx context.Context, m *v1alpha2.Materialize) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, kind := range OwnedKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.reader.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels{v1alpha2.LabelResourceID: m.Status.ResourceID})
		if kind == objects.KindCertificate && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if owner := ownerOf(&list.Items[i]); owner != nil && owner.UID == m.UID {
				all = append(all, &list.Items[i])
			}
		}
	}
	return all, nil
}

func (r labelReader) Live(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object, err := cacheReader{live: r.reader}.Live(ctx, kind, key)
	if kind != objects.KindStatefulSet && apierrors.IsForbidden(err) {
		// Without permission, objects of other operators are left out of the plan.
		return nil, nil
	}
	return object, err
}

// RecordedAnswers returns the answers in the status, for commands: environmentd may be reachable from the operator only.
func RecordedAnswers(m *v1alpha2.Materialize) LeaderReader { return recordedAnswers{m} }

type recordedAnswers struct{ m *v1alpha2.Materialize }

func (h recordedAnswers) Status(_ context.Context, at environmentd.Address) (v1alpha2.LeaderStatus, error) {
	p := Progress(h.m)
	switch {
	case p == nil || p.Generation != at.Generation || p.Leader == nil:
		return "", nil
	case p.Leader.Status == v1alpha2.LeaderUnknown:
		return "", errors.New(p.Leader.Message)
	}
	return p.Leader.Status, nil
}

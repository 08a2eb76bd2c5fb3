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
	"github.com/fairlead/fairlead/internal/rollout/environmentd"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// Reader finds what belongs to an environment.
type Reader interface {
	// Owned are all objects that belong to a Materialize.
	Owned(context.Context, *v1alpha2.Materialize) ([]*unstructured.Unstructured, error)
	// Live is the object of a kind and a name, whomever it belongs to, nil if there is none.
	Live(context.Context, schema.GroupVersionKind, client.ObjectKey) (*unstructured.Unstructured, error)
}

// Leaders asks environmentd.
type LeaderReader interface {
	Status(context.Context, environmentd.Address) (v1alpha2.LeaderStatus, error)
}

// objectReader reads from a cache of what Fairlead has made, and asks the API server for the rest.
type cacheReader struct {
	objects client.Reader
	live    client.Reader
	kinds   func() []schema.GroupVersionKind
}

// byOwner is the index of objects by the UID of the Materialize that they belong to.
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
	object := newUnstructured(kind)
	err := r.live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", kind.Kind, key, err)
	}
	return object, nil
}

// notInstalled holds for a kind that the API server does not know.
func notInstalled(err error) bool {
	var discovery *meta.NoKindMatchError
	return errors.As(err, &discovery) || meta.IsNoMatchError(err)
}

// Belongings are the kinds of all that belongs to an environment. That of cert-manager may not be installed.
func OwnedKinds() []schema.GroupVersionKind {
	return append(slices.Clone(builtinKinds), objects.KindCertificate)
}

// NewReader finds what belongs to an environment among what a client or a cache has. Of the kinds that it is told not to
// look at, it finds nothing.
func NewReader(reader client.Reader, except ...schema.GroupVersionKind) Reader {
	return labelReader{reader, except}
}

type labelReader struct {
	reader client.Reader
	except []schema.GroupVersionKind
}

func (r labelReader) Owned(ctx context.Context, m *v1alpha2.Materialize) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, kind := range OwnedKinds() {
		if slices.Contains(r.except, kind) {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.reader.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels{v1alpha2.LabelResourceID: m.Status.ResourceID})
		if kind == objects.KindCertificate && (notInstalled(err) || apierrors.IsNotFound(err)) {
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
		// What may not be seen of what others have made makes little difference.
		return nil, nil
	}
	return object, err
}

// Heard gives the answers that the operator has heard and written down: only it may be where environmentd can be reached.
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

package rollout

import (
	"context"
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
type LeaderReader func(context.Context, environmentd.Address) v1alpha2.LeaderAnswer

// ownerIndex indexes objects by the UID of their Materialize.
const ownerIndex = "owner"

// objectReader reads owned objects from a cache or the API server, and others from the API server.
type objectReader struct {
	objects, live client.Reader
	kinds         func() []schema.GroupVersionKind
	// selects the objects of a Materialize.
	selects func(*v1alpha2.Materialize) client.ListOption
	// skipsForbidden leaves objects of other operators out of the plan if they may not be read.
	skipsForbidden bool
}

// newCacheReader returns the Reader of the operator.
func newCacheReader(owned *ownedObjects, live client.Reader) Reader {
	return objectReader{
		objects: owned.client, live: live, kinds: owned.cachedKinds,
		selects: func(m *v1alpha2.Materialize) client.ListOption {
			return client.MatchingFields{ownerIndex: string(m.UID)}
		},
	}
}

// NewReader returns a Reader for commands, which finds owned objects by label.
func NewReader(reader client.Reader) Reader {
	return objectReader{
		objects: reader, live: reader, kinds: OwnedKinds, skipsForbidden: true,
		selects: func(m *v1alpha2.Materialize) client.ListOption {
			return client.MatchingLabels{v1alpha2.LabelResourceID: m.Status.ResourceID}
		},
	}
}

// OwnedKinds are the kinds of owned objects. That of cert-manager may not be installed.
func OwnedKinds() []schema.GroupVersionKind {
	return append(slices.Clone(builtinKinds), objects.KindCertificate)
}

func (r objectReader) Owned(ctx context.Context, m *v1alpha2.Materialize) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, kind := range r.kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.objects.List(ctx, list, client.InNamespace(m.Namespace), r.selects(m), client.UnsafeDisableDeepCopy)
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

func (r objectReader) Live(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object, err := kube.GetIfExists(ctx, r.live, key, newUnstructured(kind))
	if r.skipsForbidden && kind != objects.KindStatefulSet && kind != objects.KindServiceAccount && apierrors.IsForbidden(err) {
		return nil, nil
	}
	return object, err
}

// RecordedAnswers returns the answers in the status, for commands: environmentd may be reachable from the operator only.
func RecordedAnswers(m *v1alpha2.Materialize) LeaderReader {
	return func(_ context.Context, at environmentd.Address) v1alpha2.LeaderAnswer {
		if p := Progress(m); p != nil && p.Generation == at.Generation && p.Leader != nil {
			return *p.Leader
		}
		return v1alpha2.LeaderAnswer{}
	}
}

package installer

import (
	"context"
	"crypto/sha256"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// Drift is an object that is not as it was installed.
type Drift struct {
	Desired *unstructured.Unstructured
	// Field is the first that differs; it is empty when the object is gone.
	Field string
}

// appliedState is a hash of our managed fields when the object was last compared in full. A client that changes one of our
// fields takes its ownership, which changes the hash; a status update does not.
type appliedState struct {
	uid  types.UID
	hash [sha256.Size]byte
}

func (s appliedState) isApplied() bool { return s.hash != [sha256.Size]byte{} }

type objectKey struct {
	schema.GroupKind
	types.NamespacedName
}

func keyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{object.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(object)}
}

// drift compares desired with live objects. Only objects whose managed fields have changed are read in full.
func (k *ReleaseClient) drift(ctx context.Context, desired []*unstructured.Unstructured) ([]Drift, error) {
	var drifts []Drift
	for _, object := range desired {
		if !k.objects.cached(object.GroupVersionKind()) {
			continue
		}
		have, err := k.objects.get(ctx, object.GroupVersionKind(), client.ObjectKeyFromObject(object))
		if err != nil {
			return nil, err
		}
		now := appliedStateOf(have)
		if last, known := k.compared.Load(keyOf(object)); known && now.uid != "" && last == now {
			continue
		}
		drift, version, err := k.inspect(ctx, object)
		if err != nil {
			return nil, err
		}
		if drift != nil {
			drifts = append(drifts, *drift)
		} else if now.isApplied() && have.ResourceVersion == version {
			// The cache may lag behind, and an object without managed fields of ours would not show a change.
			k.compared.Store(keyOf(object), now)
		}
	}
	return drifts, nil
}

// inspect compares an object in full, and returns its resource version.
func (k *ReleaseClient) inspect(ctx context.Context, desired *unstructured.Unstructured) (*Drift, string, error) {
	live, err := k.releases.Live(ctx, desired)
	if err != nil {
		return nil, "", err
	}
	if live == nil {
		return &Drift{Desired: desired}, "", nil
	}
	if field, differs := release.Differs(desired, live); differs {
		return &Drift{Desired: desired, Field: field}, "", nil
	}
	return nil, live.GetResourceVersion(), nil
}

// appliedStateOf reads the metadata from the cache: in a full object, managed fields are encoded differently.
func appliedStateOf(object *metav1.PartialObjectMetadata) appliedState {
	if object == nil {
		return appliedState{}
	}
	now := appliedState{uid: object.GetUID()}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == v1.FieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil {
			now.hash = sha256.Sum256(append(now.hash[:], entry.FieldsV1.String()...))
		}
	}
	return now
}

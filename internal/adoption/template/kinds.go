package template

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// kindTimeout is how long the hub may take to answer about a kind.
const kindTimeout = 5 * time.Second

// watchedKinds are those of the hub that policies select. A kind that is not there, or not to be read, holds up no other.
type watchedKinds struct {
	mapper meta.RESTMapper
	reader client.Reader
	// watch starts the watch of a kind.
	watch   func(schema.GroupVersionKind)
	watched sync.Map
}

// watchKind watches a kind from now on, if it can be read.
func (k *watchedKinds) watchKind(ctx context.Context, kind schema.GroupVersionKind) error {
	if k.isWatched(kind) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kindTimeout)
	defer cancel()
	if err := k.checkReadable(ctx, kind); err != nil {
		return err
	}
	if _, watched := k.watched.LoadOrStore(kind, true); !watched {
		k.watch(kind)
	}
	return nil
}

func (k *watchedKinds) isWatched(kind schema.GroupVersionKind) bool {
	_, watched := k.watched.Load(kind)
	return watched
}

// checkReadable reads one object, because an informer would only log that it is refused.
func (k *watchedKinds) checkReadable(ctx context.Context, kind schema.GroupVersionKind) error {
	mapping, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the hub has no kind %s in %s: install its CRD on the hub, or write the kind as the hub does", kind.Kind, kind.GroupVersion())
	}
	if err != nil {
		return fmt.Errorf("look up kind %s: %w", kind.Kind, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = k.reader.List(ctx, list, client.Limit(1))
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the operator may not read %s on the hub: grant get, list and watch on resource %s of group %q in rbac.extraRules of the chart",
			kind.Kind, mapping.Resource.Resource, kind.Group)
	}
	if err != nil {
		return fmt.Errorf("list %s on the hub: %w", kind.Kind, err)
	}
	return nil
}

// ErrorFor tries to watch all kinds that a policy selects, and returns the first error. The policy controller retries. Kinds are
// tried side by side, because one of an API server that does not answer takes all of kindTimeout.
func (k *watchedKinds) ErrorFor(ctx context.Context, policy *policy.Policy) error {
	failed := make([]error, len(policy.Spec.ResourceSelectors))
	var tries sync.WaitGroup
	for i, s := range policy.Spec.ResourceSelectors {
		tries.Go(func() { failed[i] = k.watchKind(ctx, schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)) })
	}
	tries.Wait()
	return cmp.Or(failed...)
}

package template

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

const (
	// kindTimeout is how long the hub may take to answer about a kind.
	kindTimeout = 5 * time.Second
	// missInterval is how long a kind that cannot be watched is not asked for again, by any policy. It ends before a policy retries.
	missInterval = policy.KindRetryInterval / 2
	// maxMisses bounds what is remembered: anybody who may write policies can think of kinds.
	maxMisses = 4096
)

// watchedKinds are those of the hub that policies select. A kind that is not there, or not to be read, holds up no other.
type watchedKinds struct {
	mapper meta.RESTMapper
	reader client.Reader
	// watch starts the watch of a kind, and calls recordStarted.
	watch func(schema.GroupVersionKind)
	// watched are the kinds that are or will be watched; the value is true once the watch was started.
	watched sync.Map
	// misses are the errors of kinds that cannot be watched.
	misses *utilcache.LRUExpireCache
}

func newWatchedKinds(mapper meta.RESTMapper, reader client.Reader, now utilcache.Clock) *watchedKinds {
	return &watchedKinds{mapper: mapper, reader: reader, misses: utilcache.NewLRUExpireCacheWithClock(maxMisses, now)}
}

// watchKind watches a kind from now on, if it can be read.
func (k *watchedKinds) watchKind(ctx context.Context, kind schema.GroupVersionKind) error {
	if k.isWatched(kind) {
		return nil
	}
	if missed, found := k.misses.Get(kind); found {
		return missed.(error)
	}
	ctx, cancel := context.WithTimeout(ctx, kindTimeout)
	defer cancel()
	if err := k.checkReadable(ctx, kind); err != nil {
		k.misses.Add(kind, err, missInterval)
		return err
	}
	if _, watched := k.watched.LoadOrStore(kind, false); !watched {
		k.watch(kind)
	}
	return nil
}

func (k *watchedKinds) isWatched(kind schema.GroupVersionKind) bool {
	_, watched := k.watched.Load(kind)
	return watched
}

func (k *watchedKinds) recordStarted(kind schema.GroupVersionKind) { k.watched.Store(kind, true) }

func (k *watchedKinds) isStarted(kind schema.GroupVersionKind) bool {
	started, _ := k.watched.Load(kind)
	return started == true
}

// limitStarts starts watches a few at a time: the first list of a kind takes memory for all of its resources at once.
func limitStarts(limit int, start func(schema.GroupVersionKind)) func(schema.GroupVersionKind) {
	starting := make(chan struct{}, limit)
	return func(kind schema.GroupVersionKind) {
		go func() {
			starting <- struct{}{}
			defer func() { <-starting }()
			start(kind)
		}()
	}
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

// ErrorFor tries to watch all kinds that a policy follows, and returns the first error. The policy controller retries. A few kinds
// are tried side by side, because one of an API server that does not answer takes all of kindTimeout.
func (k *watchedKinds) ErrorFor(ctx context.Context, policy *policy.Policy) error {
	kinds := policy.FollowedKinds()
	failed := make([]error, len(kinds))
	var tries errgroup.Group
	tries.SetLimit(model.MaxConcurrent)
	for i, kind := range kinds {
		tries.Go(func() error {
			failed[i] = k.watchKind(ctx, kind)
			return nil
		})
	}
	_ = tries.Wait()
	return cmp.Or(failed...)
}

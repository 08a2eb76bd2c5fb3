package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/rollout"
)

// watchMaterialize keeps a copy of the Materialize and of what belongs to it, which changes many times during a rollout.
func watchMaterialize(ctx context.Context, c *connect.Cluster, r connect.Resource) (watcher, error) {
	before, err := getEnvironment(ctx, c, r.Key)
	if err != nil {
		return watcher{}, err
	}
	f, err := newWatchCache(c, ownedObjectsCache(r.Key))
	if err != nil {
		return watcher{}, err
	}
	kinds, except := []client.Object{&v1alpha2.Materialize{}}, slices.Clone(before.forbidden)
	for _, kind := range append(rollout.OwnedKinds(), podKind) {
		if _, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			except = append(except, kind)
		}
		switch {
		case slices.Contains(except, kind):
		case kind == podKind:
			kinds = append(kinds, &corev1.Pod{})
		default:
			kinds = append(kinds, newObject(kind))
		}
	}
	if err := f.watchKinds(ctx, kinds...); err != nil {
		return watcher{}, err
	}
	if err := f.start(ctx, func() bool { return true }); err != nil {
		return watcher{}, err
	}
	return watcher{f.failOnError(func(ctx context.Context) (account, error) {
		m := &v1alpha2.Materialize{}
		if err := f.informers.Get(ctx, r.Key, m); err != nil {
			return account{}, fmt.Errorf("get Materialize %s: %w", r.Key, err)
		}
		e, err := observeKinds(ctx, f.informers, m, except)
		if err != nil {
			return account{}, err
		}
		e.forbidden = before.forbidden
		return e.report(nil, time.Now())
	}), f.changed}, nil
}

// environment is the one of a Materialize as it is now.
func getEnvironment(ctx context.Context, c *connect.Cluster, key client.ObjectKey) (environment, error) {
	m := &v1alpha2.Materialize{}
	if err := c.Client.Get(ctx, key, m); err != nil {
		return environment{}, fmt.Errorf("get Materialize %s: %w", key, err)
	}
	return observeEnvironment(ctx, c.Client, m)
}

func ownedObjectsCache(key client.ObjectKey) cache.Options {
	labelled, err := labels.NewRequirement(v1alpha2.LabelResourceID, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	return cache.Options{
		DefaultNamespaces:    map[string]cache.Config{key.Namespace: {}},
		DefaultLabelSelector: labels.NewSelector().Add(*labelled),
		DefaultTransform:     cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha2.Materialize{}: {Label: labels.Everything(), Field: fields.OneTermEqualSelector("metadata.name", key.Name)},
			// A generation that somebody else has made has no such label.
			newObject(appsv1.SchemeGroupVersion.WithKind("StatefulSet")): {Label: labels.Everything()},
		},
	}
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

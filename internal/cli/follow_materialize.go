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
	"github.com/fairlead/fairlead/internal/rollout"
)

// followMaterialize keeps a copy of the Materialize and of what belongs to it, which changes many times during a rollout.
func (c *cluster) followMaterialize(ctx context.Context, r resource) (lookout, error) {
	before, err := c.environment(ctx, r.key)
	if err != nil {
		return lookout{}, err
	}
	f, err := c.follow(belongingsOf(r.key))
	if err != nil {
		return lookout{}, err
	}
	kinds, except := []client.Object{&v1alpha2.Materialize{}}, slices.Clone(before.unseen)
	for _, kind := range append(rollout.OwnedKinds(), podKind) {
		if _, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			except = append(except, kind)
		}
		switch {
		case slices.Contains(except, kind):
		case kind == podKind:
			kinds = append(kinds, &corev1.Pod{})
		default:
			kinds = append(kinds, ofKind(kind))
		}
	}
	if err := f.hearOf(ctx, kinds...); err != nil {
		return lookout{}, err
	}
	if err := f.start(ctx, func() bool { return true }); err != nil {
		return lookout{}, err
	}
	return lookout{f.telling(func(ctx context.Context) (account, error) {
		m := &v1alpha2.Materialize{}
		if err := f.informers.Get(ctx, r.key, m); err != nil {
			return account{}, fmt.Errorf("get Materialize %s: %w", r.key, err)
		}
		e, err := lookAt(ctx, f.informers, m, except)
		if err != nil {
			return account{}, err
		}
		e.unseen = before.unseen
		return e.tell(nil, time.Now())
	}), f.changed}, nil
}

// environment is the one of a Materialize as it is now.
func (c *cluster) environment(ctx context.Context, key client.ObjectKey) (environment, error) {
	m := &v1alpha2.Materialize{}
	if err := c.client.Get(ctx, key, m); err != nil {
		return environment{}, fmt.Errorf("get Materialize %s: %w", key, err)
	}
	return observe(ctx, c.client, m)
}

func belongingsOf(key client.ObjectKey) cache.Options {
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
			ofKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet")): {Label: labels.Everything()},
		},
	}
}

func ofKind(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

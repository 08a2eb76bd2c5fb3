// Package materialize is what commands know about a Materialize and its rollouts.
package materialize

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/rollout"
)

// Kind is Materialize.
type Kind struct{}

func (*Kind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{v1alpha2.GroupVersion.WithKind(v1alpha2.MaterializeKind).GroupKind()}
}

func (*Kind) Hints() map[string]string {
	return map[string]string{"retry": "a Materialize is rolled out again with a new UUID in spec.forceRollout"}
}

func (*Kind) Status(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error) {
	return readStatus(ctx, reader, r)
}

func readStatus(ctx context.Context, reader client.Reader, r connect.Resource, unlisted ...schema.GroupVersionKind) (render.Status, error) {
	e, err := observe(ctx, reader, r, unlisted...)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return newStatus(e, rollout.Plan(e.Observed, now), now), nil
}

// Watch keeps a copy of the Materialize and of what belongs to it, which changes many times during a rollout.
func (*Kind) Watch(ctx context.Context, r connect.Resource) (kind.Watch, error) {
	before, err := observe(ctx, r.Cluster.Client, r)
	if err != nil {
		return kind.Watch{}, err
	}
	kinds := []client.Object{&v1alpha2.Materialize{}}
	for _, kind := range append(rollout.OwnedKinds(), podKind) {
		switch {
		case slices.Contains(before.Unlisted, kind):
		case kind == podKind:
			kinds = append(kinds, &corev1.Pod{})
		default:
			kinds = append(kinds, newObject(kind))
		}
	}
	status := func(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error) {
		return readStatus(ctx, reader, r, before.Unlisted...)
	}
	return kind.NewCachedWatch(ctx, r, ownedObjectsCache(r.Key), kinds, status)
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
			// A generation that Fairlead has not made has no such label.
			newObject(appsv1.SchemeGroupVersion.WithKind("StatefulSet")): {Label: labels.Everything()},
		},
	}
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

package materialize

import (
	"context"
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
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/rollout"
)

// Watch keeps a copy of the Materialize and of what belongs to it, which changes many times during a rollout.
func (*Kind) Watch(ctx context.Context, c *connect.Cluster, r connect.Resource) (kind.Watch, error) {
	before, err := getEnvironment(ctx, c.Client, r.Key)
	if err != nil {
		return kind.Watch{}, err
	}
	kinds, except := []client.Object{&v1alpha2.Materialize{}}, slices.Clone(before.Unlisted)
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
	return kind.NewCachedWatch(ctx, c, ownedObjectsCache(r.Key), kinds, func(ctx context.Context, reader client.Reader) (render.Status, error) {
		m, err := getMaterialize(ctx, reader, r.Key)
		if err != nil {
			return nil, err
		}
		e, err := observeKinds(ctx, reader, m, except)
		if err != nil {
			return nil, err
		}
		e.Unlisted = before.Unlisted
		return e.newStatus(time.Now()), nil
	})
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

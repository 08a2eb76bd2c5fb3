// Package policy is what commands know about a PropagationPolicy and a ClusterPropagationPolicy.
package policy

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/work"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// Kind is PropagationPolicy and ClusterPropagationPolicy.
type Kind struct{}

func (*Kind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{
		policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.PropagationPolicyKind).GroupKind(),
		policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.ClusterPropagationPolicyKind).GroupKind(),
	}
}

// newPolicy is an empty ClusterPropagationPolicy for a key without namespace, and an empty PropagationPolicy for others.
func newPolicy(key client.ObjectKey) client.Object {
	if key.Namespace == "" {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}

func getPolicy(ctx context.Context, reader client.Reader, r connect.Resource) (client.Object, error) {
	object := newPolicy(r.Key)
	return object, r.Get(ctx, reader, object)
}

func (*Kind) Hints() map[string]string {
	return map[string]string{"retry": fmt.Sprintf("what a policy could not apply is tried again every %s", work.RecheckInterval)}
}

// Watch keeps a copy of what the status of a policy is made of: a policy may take over a thousand resources, too many to list
// again and again.
func (k *Kind) Watch(ctx context.Context, r connect.Resource) (kind.Watch, error) {
	object, err := getPolicy(ctx, r.Cluster.Client, r)
	if err != nil {
		return kind.Watch{}, err
	}
	p := policy.Of(object)
	options := cache.Options{DefaultTransform: reduceTemplates, ByObject: map[client.Object]cache.ByObject{}}
	if r.Key.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{r.Key.Namespace: {}}
		everywhere := map[string]cache.Config{cache.AllNamespaces: {}}
		options.ByObject[&policyv1alpha1.PropagationPolicy{}] = cache.ByObject{Namespaces: everywhere}
	}
	watched := append(forecast.WatchedKinds(p), &policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{})
	refused := map[schema.GroupVersionKind]error{}
	for _, dependency := range forecast.DependencyKinds() {
		gvk := dependency.GetObjectKind().GroupVersionKind()
		if p.Kinds()[gvk] {
			continue
		}
		if err := checkReadable(ctx, r.Cluster.Client, gvk, r.Key.Namespace); err != nil {
			refused[gvk] = err
		} else if p.MayPropagateDeps() {
			watched = append(watched, dependency)
		}
	}
	return kind.NewCachedWatch(ctx, r, options, watched, func(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error) {
		return k.Status(ctx, refusingReader{reader, refused}, r)
	})
}

// reduceTemplates keeps of templates, which are all that is unstructured, no more than a status is made of.
func reduceTemplates(object any) (any, error) {
	if template, ok := object.(*unstructured.Unstructured); ok {
		return forecast.Reduce(template), nil
	}
	return cache.TransformStripManagedFields()(object)
}

// checkReadable is why the objects of a kind may not be read.
func checkReadable(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	if apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// refusingReader refuses to get objects of some kinds. A cache would wait for ever to read them.
type refusingReader struct {
	client.Reader
	refused map[schema.GroupVersionKind]error
}

func (r refusingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := r.refused[object.GetObjectKind().GroupVersionKind()]; err != nil {
		return err
	}
	return r.Reader.Get(ctx, key, object, options...)
}

package adoptiontest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// API is an API server in memory, which records what is written to it.
type API struct {
	client.WithWatch
	// Writes are the verb, the kind and the name of each write that succeeded.
	Writes []string
	// On, if set, sees every request for an object before it is served. It may fail the request, or change the object as admission does.
	On func(verb string, object client.Object) error
	// OnList, if set, sees every list before it is served, with the kind of its items, and may fail it.
	OnList func(kind, namespace string) error

	mu sync.Mutex
}

// NewAPI has the given objects, and the indexes that configure adds.
func NewAPI(t testing.TB, configure func(*fake.ClientBuilder), objects ...client.Object) *API {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	// The default converters read the schemas of all kinds of Kubernetes, which takes longer than most tests.
	builder := fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithObjects(objects...).WithStatusSubresource(
		&workv1alpha1.Work{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{},
		&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{})
	if configure != nil {
		configure(builder)
	}
	api := &API{}
	api.WithWatch = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			object.SetNamespace(key.Namespace)
			object.SetName(key.Name)
			return api.serve("get", object, func() error { return c.Get(ctx, key, object, options...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if api.OnList != nil {
				kind, err := c.GroupVersionKindFor(list)
				if err == nil {
					err = api.OnList(strings.TrimSuffix(kind.Kind, "List"), (&client.ListOptions{}).ApplyOptions(options).Namespace)
				}
				if err != nil {
					return err
				}
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			verb := verbOf("create", (&client.CreateOptions{}).ApplyOptions(options).DryRun)
			return api.serve(verb, object, func() error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			verb := verbOf("update", (&client.UpdateOptions{}).ApplyOptions(options).DryRun)
			return api.serve(verb, object, func() error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return api.serve("patch", object, func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return api.serve("delete", object, func() error { return c.Delete(ctx, object, options...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, subresource string, object, body client.Object, options ...client.SubResourceCreateOption) error {
			return api.serve("create "+subresource, object, func() error { return c.SubResource(subresource).Create(ctx, object, body, options...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, subresource string, configuration runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
			return api.serve("apply "+subresource, &metav1.PartialObjectMetadata{}, func() error {
				return c.SubResource(subresource).Apply(ctx, configuration, options...)
			})
		},
	})
	return api
}

func verbOf(verb string, dryRun []string) string {
	if slices.Contains(dryRun, metav1.DryRunAll) {
		return "dry-run " + verb
	}
	return verb
}

func (a *API) serve(verb string, object client.Object, request func() error) error {
	if a.On != nil {
		if err := a.On(verb, object); err != nil {
			return err
		}
	}
	err := request()
	if err == nil && verb != "get" {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.Writes = append(a.Writes, Describe(verb, object))
	}
	return err
}

// Refuse is an On that fails the requests that are written so in Writes, such as "delete Work it".
func Refuse(request string, err error) func(verb string, object client.Object) error {
	return func(verb string, object client.Object) error {
		if Describe(verb, object) == request {
			return err
		}
		return nil
	}
}

// Describe is a request as it is written in Writes: the verb, and the kind and the name of the object. A status, which is not an
// object of its own, has neither.
func Describe(verb string, object client.Object) string {
	if object.GetName() == "" {
		return verb
	}
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(object).Elem().Name()
	}
	return verb + " " + kind + " " + object.GetName()
}

// Exists tells whether the server has an object of that kind and name, and reads it.
func (a *API) Exists(t testing.TB, object client.Object) bool {
	t.Helper()
	err := a.WithWatch.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

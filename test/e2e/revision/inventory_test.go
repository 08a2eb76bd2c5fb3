package revision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// inventory names all objects of the cluster that match, as "Kind namespace/name". It goes by what the API server
// knows, not by what the operator believes to have written.
func (w *world) inventory(ctx context.Context, match func(kind string, object client.Object) bool) ([]string, error) {
	kinds, err := w.listable()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := w.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if item := &list.Items[i]; match(kind.Kind, item) {
				names = append(names, fmt.Sprintf("%s %s/%s", kind.Kind, item.Namespace, item.Name))
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// fleeting are kinds that Kubernetes makes and removes after others, in its own time.
var fleeting = []string{"Event", "Endpoints", "EndpointSlice", "ReplicaSet", "Pod", "PodMetrics", "NodeMetrics", "ComponentStatus", "Lease", "APIService"}

func (w *world) listable() ([]schema.GroupVersionKind, error) {
	resources, err := discovery.NewDiscoveryClientForConfig(w.Config())
	if err != nil {
		return nil, err
	}
	lists, err := resources.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && !slices.Contains(fleeting, resource.Kind) {
				kinds = append(kinds, version.WithKind(resource.Kind))
			}
		}
	}
	return kinds, nil
}

// nothingLeft waits until no object matches any more.
func (w *world) nothingLeft(t testing.TB, match func(kind string, object client.Object) bool) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		names, err := w.inventory(ctx, match)
		if len(names) > 0 {
			err = errors.Join(err, fmt.Errorf("left are %q", names))
		}
		return err
	})
}

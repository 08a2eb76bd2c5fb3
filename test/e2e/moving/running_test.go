package moving_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/operator/foreign"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// runningKinds are what a takeover must neither restart nor reroute.
var runningKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, {Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
}

// running are these objects, but for those of the other controller itself, each with its UID, its generation and what it does.
func (w world) running(t *testing.T, other string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, kind := range runningKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := w.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			if item.GetNamespace() == other || item.GetDeletionTimestamp() != nil {
				continue
			}
			does, err := json.Marshal([]any{item.Object["webhooks"], selectorOf(kind.Kind, item.Object)})
			if err != nil {
				t.Fatal(err)
			}
			all[kind.Kind+" "+item.GetNamespace()+"/"+item.GetName()] = fmt.Sprintf("UID %s, generation %d, %s", item.GetUID(), item.GetGeneration(), does)
		}
	}
	return all
}

func selectorOf(kind string, object map[string]any) any {
	if kind != "Service" {
		return nil
	}
	selector, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "selector")
	return selector
}

// unchanged compares what runs with what ran before. What is new has to be named.
func unchanged(t *testing.T, before, after map[string]string, added ...string) {
	t.Helper()
	for name, was := range before {
		if is := after[name]; is != was {
			t.Errorf("%s was\n%s\nand is\n%s", name, was, is)
		}
	}
	for name := range after {
		if _, known := before[name]; !known && !slices.Contains(added, name) {
			t.Errorf("%s is new", name)
		}
	}
}

// unwritten compares all objects with what they were before. Kubernetes adds some by itself, such as EndpointSlices: of what is new, only
// what Fairlead has written counts.
func (w world) unwritten(t *testing.T, before map[string]string) {
	t.Helper()
	after := w.objects(t)
	maps.DeleteFunc(after, func(name, is string) bool {
		_, known := before[name]
		return !known && !strings.Contains(is, ", ")
	})
	unchanged(t, before, after)
}

// objects are those of all kinds, each with its UID and with what Fairlead has written, but for the condition that a passage holds.
func (w world) objects(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	wait.Until(t, func(ctx context.Context) error {
		clear(all)
		return w.list(ctx, all)
	})
	return all
}

func (w world) list(ctx context.Context, all map[string]string) error {
	discover, err := discovery.NewDiscoveryClientForConfig(w.Config())
	if err != nil {
		return err
	}
	groups, err := discover.ServerPreferredResources()
	if err != nil {
		return err
	}
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Kind == "Event" {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(version.WithKind(resource.Kind + "List"))
			if err := w.List(ctx, list); err != nil {
				return errors.Join(err, fmt.Errorf("list %s", resource.Name))
			}
			for i := range list.Items {
				if item := &list.Items[i]; item.Namespace != "kube-node-lease" {
					all[resource.Kind+" "+item.Namespace+"/"+item.Name] = string(item.UID) + writesOf(item)
				}
			}
		}
	}
	return nil
}

func writesOf(object client.Object) string {
	var text strings.Builder
	for _, entry := range object.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "fairlead") && entry.Manager != foreign.FieldOwner {
			fmt.Fprintf(&text, ", %s of %s at %s", entry.Operation, entry.Manager, entry.Time)
		}
	}
	return text.String()
}

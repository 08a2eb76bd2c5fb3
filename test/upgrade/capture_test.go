package upgrade_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/test/harness"
)

type objectKey struct{ group, kind, namespace, name string }

func keyOf(o *unstructured.Unstructured) objectKey {
	return objectKey{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

func keysOf(objects []*unstructured.Unstructured) map[objectKey]bool {
	keys := map[objectKey]bool{}
	for _, o := range objects {
		keys[keyOf(o)] = true
	}
	return keys
}

// notCaptured are kinds that Kubernetes makes anew, or that only matter to it.
var notCaptured = []string{
	"APIService", "ControllerRevision", "CustomResourceDefinition", "Endpoints", "EndpointSlice", "Event", "IPAddress", "Lease", "Node", "ServiceCIDR",
}

// all are the objects of a cluster, but for those that are not captured.
func (s *site) all(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	all, err := harness.ListAll(t.Context(), s.Cluster, s, notCaptured...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// uid is that of a cluster.
func (s *site) uid(t testing.TB) string {
	t.Helper()
	var system corev1.Namespace
	if err := s.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		t.Fatal(err)
	}
	return string(system.UID)
}

// captured is a file of testdata.
type captured struct {
	// At is when the objects were captured: times are shifted when they are restored.
	At time.Time `json:"at"`
	// Cluster is the UID of the namespace kube-system, by which a hub is known.
	Cluster string                       `json:"cluster"`
	Objects []*unstructured.Unstructured `json:"objects"`
}

// write writes the objects that were not there before.
func write(t testing.TB, file, clusterUID string, objects []*unstructured.Unstructured, before map[objectKey]bool) {
	t.Helper()
	kept := captured{At: time.Now().UTC().Truncate(time.Second), Cluster: clusterUID}
	for _, o := range objects {
		if !before[keyOf(o)] && isOfStory(o) {
			scrub(o)
			kept.Objects = append(kept.Objects, o)
		}
	}
	slices.SortFunc(kept.Objects, func(a, b *unstructured.Unstructured) int {
		x, y := keyOf(a), keyOf(b)
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name))
	})
	text, err := yaml.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d objects, %d bytes", file, len(kept.Objects), len(text))
}

// isOfStory leaves out what every namespace has, and keys, which an operator makes anew and nobody should publish.
func isOfStory(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "ServiceAccount":
		return o.GetName() != "default"
	case "ConfigMap":
		return o.GetName() != "kube-root-ca.crt"
	case "Secret":
		kind, _, _ := unstructured.NestedString(o.Object, "type")
		return kind != "kubernetes.io/service-account-token" && !strings.HasSuffix(o.GetName(), "-webhook-certificate")
	}
	return true
}

// isOurs tells Fairlead's kinds, whose status is restored, from those of Kubernetes.
func isOurs(o *unstructured.Unstructured) bool {
	group := o.GroupVersionKind().Group
	return slices.ContainsFunc([]string{"fairlead.dev", "karmada.io", "kuma.io", "materialize.cloud", "sailoperator.io"}, func(of string) bool {
		return group == of || strings.HasSuffix(group, "."+of)
	})
}

// scrub removes what cannot be restored, or what Kubernetes restores by itself.
func scrub(o *unstructured.Unstructured) {
	for _, field := range []string{"resourceVersion", "creationTimestamp", "selfLink", "generateName"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	managers := slices.DeleteFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return !strings.HasPrefix(m.Manager, "fairlead") })
	o.SetManagedFields(noneIfEmpty(managers))
	if !isOurs(o) {
		delete(o.Object, "status")
		// Controllers of Kubernetes find what is theirs by its labels.
		owners := slices.DeleteFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return strings.HasPrefix(r.APIVersion, "apps/") })
		o.SetOwnerReferences(noneIfEmpty(owners))
	}
	switch o.GetKind() {
	case "Namespace":
		delete(o.Object, "spec")
	case "Service":
		if ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP"); ip != "None" {
			unstructured.RemoveNestedField(o.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
		}
	case "Pod":
		unstructured.RemoveNestedField(o.Object, "spec", "nodeName")
		scrubTokens(o)
	}
}

func noneIfEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// scrubTokens removes the volume with a token that every pod gets.
func scrubTokens(pod *unstructured.Unstructured) {
	isToken := func(volume any) bool {
		name, _, _ := unstructured.NestedString(volume.(map[string]any), "name")
		return strings.HasPrefix(name, "kube-api-access-")
	}
	spec := pod.Object["spec"].(map[string]any)
	if volumes, ok := spec["volumes"].([]any); ok {
		spec["volumes"] = slices.DeleteFunc(volumes, isToken)
	}
	for _, kind := range []string{"containers", "initContainers"} {
		containers, _ := spec[kind].([]any)
		for _, container := range containers {
			fields := container.(map[string]any)
			if mounts, ok := fields["volumeMounts"].([]any); ok {
				fields["volumeMounts"] = slices.DeleteFunc(mounts, isToken)
			}
		}
	}
}

package desired

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// FuzzNamespaceRules: whatever the annotations of a Namespace say, a name is allowed that is its own or is written there, and no
// other; and what is said of a refusal stays short.
func FuzzNamespaceRules(f *testing.F) {
	f.Add("payments, orders", "shop", "payments")
	f.Add("*.mesh.local,pay.example.org", "bank", "pay.bank.mesh.local")
	f.Add("*", "bank", "default")
	f.Add(",, ,*,*.", "a", "x.a.mesh")
	f.Add("*mesh.local", "b", "evilmesh.local")
	f.Fuzz(func(t *testing.T, list, namespace, name string) {
		object := &metav1.ObjectMeta{Name: namespace, Annotations: map[string]string{
			kumav1alpha1.AnnotationAllowedMeshes: list, kumav1alpha1.AnnotationAllowedServices: list, kumav1alpha1.AnnotationAllowedHostnames: list,
		}}
		rules := RulesOf(object)
		var items []string
		for item := range strings.SplitSeq(list, ",") {
			items = append(items, strings.TrimSpace(item))
		}
		has := func(item string) bool { return item != "" && slices.Contains(items, item) }
		if got, want := rules.AllowsMesh(name), name == kumav1alpha1.DefaultMesh || has(name) || has("*"); got != want {
			t.Errorf("Mesh %q by %q: %t", name, list, got)
		}
		if got, want := rules.AllowsService(name), has(name); got != want {
			t.Errorf("service %q by %q: %t", name, list, got)
		}
		domain := false
		for i := range name {
			domain = domain || name[i] == '.' && has("*"+name[i:])
		}
		own := namespace != "" && slices.Contains(strings.Split(name, "."), namespace) && !strings.HasSuffix(name, tagDomain)
		if got, want := rules.allowsHostname(name, namespace), own || has(name) || domain; got != want && namespace != "" && name != "" {
			t.Errorf("hostname %q of %q by %q: %t", name, namespace, list, got)
		}
		object.Annotations = map[string]string{kumav1alpha1.AnnotationAllowedMeshes: strings.Join(rules.meshes, ","),
			kumav1alpha1.AnnotationAllowedServices: strings.Join(rules.services, ","), kumav1alpha1.AnnotationAllowedHostnames: strings.Join(rules.hostnames, ",")}
		if again := RulesOf(object); !again.Equal(rules) {
			t.Errorf("%q is read as %+v, and written again as %+v", list, rules, again)
		}
		where := ZoneInfo{SystemNamespace: "kuma-system"}
		for _, text := range []string{RefusedTagText("ns", kumav1alpha1.TagService, name, where), RefusedMeshText("Pod", "ns", name, NamespaceRules{})} {
			if len(text) > 1000 {
				t.Errorf("a refusal has %d bytes", len(text))
			}
		}
	})
}

// FuzzRecordedLabels: whatever the annotation says of which labels are Fairlead's, the desired ones are there, the others are
// nobody's but those that it names, and a second time changes nothing.
func FuzzRecordedLabels(f *testing.F) {
	f.Add("kuma.io/mesh,app", "app", "team")
	f.Add("", "a", "b")
	f.Add(",,a,", "a", "")
	f.Fuzz(func(t *testing.T, recorded, ours, theirs string) {
		there := &metav1.ObjectMeta{Labels: map[string]string{theirs: "theirs", "old": "1"}, Annotations: map[string]string{annotationLabels: recorded, "a": "b"}}
		want := &metav1.ObjectMeta{Labels: map[string]string{ours: "ours"}}
		RecordLabels(want)
		MergeMetadata(there, want)
		if there.Labels[ours] != "ours" || there.Annotations["a"] != "b" {
			t.Errorf("%v, %v", there.Labels, there.Annotations)
		}
		if names := strings.Split(recorded, ","); theirs != ours && (there.Labels[theirs] == "theirs") == slices.Contains(names, theirs) {
			t.Errorf("%q with %q recorded: %v", theirs, recorded, there.Labels)
		}
		once := maps.Clone(there.Labels)
		MergeMetadata(there, want)
		if ours != theirs && !strings.Contains(ours, ",") {
			if diff := cmp.Diff(once, there.Labels); diff != "" {
				t.Errorf("a second time (-first +second):\n%s", diff)
			}
		}
	})
}

package model

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// FuzzBindingAnnotations: whatever the annotations of a binding say, each is read as what is written again, and none makes another
// binding, or a cluster that the template goes to, one to be restored.
func FuzzBindingAnnotations(f *testing.F) {
	f.Add("all", "shop", "east,west", "2", "west")
	f.Add("", "", ",,", "-1", "")
	f.Add("a/b", "a", "east,east, east", "true", "east")
	f.Fuzz(func(t *testing.T, policy, namespace, clusters, number, cluster string) {
		b := NewBinding(client.ObjectKey{Namespace: "shop", Name: "it"})
		b.SetAnnotations(map[string]string{
			AnnotationPolicyName: policy, AnnotationPolicyNamespace: namespace, AnnotationRestoreClusters: clusters, AnnotationUntolerated: clusters,
			AnnotationNoRoom: number, AnnotationNotReported: clusters, AnnotationUnsupported: clusters, AnnotationUnmet: number, "theirs": clusters,
		})
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
		claim := ClaimOf(b)
		if claim != (PolicyKey{Namespace: namespace, Name: policy}) {
			t.Errorf("claimed by %v", claim)
		}
		if claim.Namespace != "" || claim.Name == "" {
			Claim(b, claim)
			if again := ClaimOf(b); claim.Namespace != "" && again != claim {
				t.Errorf("claimed by %v, then by %v", claim, again)
			}
		}
		NoClusterReason(b)
		UntoleratedNote(b)
		if unsupported := UnsupportedFieldsOf(b); len(unsupported) > 0 {
			SetUnsupportedFields(b, unsupported)
			if diff := cmp.Diff(unsupported, UnsupportedFieldsOf(b)); diff != "" {
				t.Error(diff)
			}
		}
		before := IsRestoredIn(b, cluster)
		RestoreIn(b)
		switch after := IsRestoredIn(b, cluster); {
		case cluster == "" || strings.Contains(cluster, ","):
		case after && (cluster == "east" || !before):
			t.Errorf("%q is restored in %q", clusters, cluster)
		case before && !after && cluster != "east":
			t.Errorf("%q is no longer restored in %q", clusters, cluster)
		}
		once := b.GetAnnotations()[AnnotationRestoreClusters]
		RestoreIn(b)
		if again := b.GetAnnotations()[AnnotationRestoreClusters]; once != again {
			t.Errorf("%q becomes %q", once, again)
		}
		if b.GetAnnotations()["theirs"] != clusters {
			t.Error("the annotation of others has changed")
		}
	})
}

// FuzzWorkAnnotations: whatever a Work says of its binding, one binding at most is told of it; and what it says of an object that has
// finished is read as what is written again.
func FuzzWorkAnnotations(f *testing.F) {
	f.Add("shop/it", `{"status":{"phase":"Succeeded"},"identifier":{"ordinal":0}}`)
	f.Add("a/b/c", `null`)
	f.Add("/", `{"status":[]}`)
	f.Add("it", `{`)
	f.Fuzz(func(t *testing.T, binding, finished string) {
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationBinding: binding, AnnotationFinished: finished}}}
		requests := BindingRequests(t.Context(), work)
		if len(requests) > 1 || (len(requests) == 0) != (binding == "") {
			t.Errorf("%q: %v", binding, requests)
		}
		for _, r := range requests {
			if strings.Contains(r.Name, "/") || r.Namespace != "" && r.String() != binding {
				t.Errorf("%q: %v", binding, r)
			}
		}
		status := FinishedBefore(work)
		if status == nil {
			return
		}
		text, err := json.Marshal(status)
		if err != nil {
			t.Skip("a status that is no JSON is not written")
		}
		work.Annotations[AnnotationFinished] = string(text)
		again := FinishedBefore(work)
		if again == nil {
			t.Fatalf("%s is not read", text)
		}
		if first, second := toJSON(t, status), toJSON(t, again); !slices.Equal(first, second) {
			t.Errorf("%s becomes %s", first, second)
		}
	})
}

func toJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

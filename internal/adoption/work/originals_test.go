package work

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

// An original is what was there, number by number, but for what its server keeps.
func TestOriginalRoundTrip(t *testing.T) {
	live := adoptiontest.Served(t, "Deployment apps/v1\nmetadata: {uid: u, labels: {team: a}}\nspec: {replicas: 3, ratio: 0.5}\nstatus: {replicas: 3}")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	text, err := compress(live)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decompress(text)
	if err != nil {
		t.Fatal(err)
	}
	want := adoptiontest.Served(t, "Deployment apps/v1\nmetadata: {uid: u, labels: {team: a}}\nspec: {replicas: 3, ratio: 0.5}")
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
	if len(live.GetManagedFields()) != 1 || live.Object["status"] == nil {
		t.Error("the live object is changed")
	}
}

func TestOriginalOfAnotherFormat(t *testing.T) {
	text, err := compress(adoptiontest.Served(t, "ConfigMap v1\ndata: {a: b}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string][]byte{"empty": nil, "not compressed": []byte("{}"), "cut off": text[:len(text)-9]} {
		t.Run(name, func(t *testing.T) {
			if _, err := decompress(broken); err == nil || !strings.HasPrefix(err.Error(), "read the original: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEqualForUsers(t *testing.T) {
	const was = "Deployment apps/v1\nmetadata: {uid: u, labels: {app: a}}\nspec: {replicas: 1}"
	for name, c := range map[string]struct {
		other string
		want  bool
	}{
		"the same":              {was, true},
		"labels of the hub":     {"Deployment apps/v1\nmetadata: {uid: u, labels: {app: a, karmada.io/managed: 'true', fairlead.dev/hub: h, fairlead.dev/work: w}}\nspec: {replicas: 1}", true},
		"another status":        {was + "\nstatus: {replicas: 1}", true},
		"another version of it": {"Deployment apps/v1\nmetadata: {uid: u, resourceVersion: '9', labels: {app: a}}\nspec: {replicas: 1}", true},
		"another label":         {"Deployment apps/v1\nmetadata: {labels: {app: b}}\nspec: {replicas: 1}", false},
		"an annotation":         {"Deployment apps/v1\nmetadata: {labels: {app: a}, annotations: {a: b}}\nspec: {replicas: 1}", false},
		"another field":         {"Deployment apps/v1\nmetadata: {labels: {app: a}}\nspec: {replicas: 2}", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EqualForUsers(adoptiontest.Served(t, was), adoptiontest.Served(t, c.other)); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

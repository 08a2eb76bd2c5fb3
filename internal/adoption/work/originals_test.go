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
	live := adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {uid: u, labels: {team: a}}\nspec: {replicas: 3, ratio: 0.5}\nstatus: {replicas: 3}")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	text, err := compress(live)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decompress(text)
	if err != nil {
		t.Fatal(err)
	}
	want := adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {uid: u, labels: {team: a}}\nspec: {replicas: 3, ratio: 0.5}")
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
	if len(live.GetManagedFields()) != 1 || live.Object["status"] == nil {
		t.Error("the live object is changed")
	}
}

func TestOriginalOfAnotherFormat(t *testing.T) {
	text, err := compress(adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}"))
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

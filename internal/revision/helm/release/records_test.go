package release

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSplit(t *testing.T) {
	attempt := func(status common.Status, names ...string) record {
		r := record{Release: &helm.Release{Info: &helm.Info{Status: status}}}
		for _, name := range names {
			boat := &unstructured.Unstructured{}
			boat.SetName(name)
			r.objects = append(r.objects, boat)
		}
		return r
	}
	const deployed, failed, superseded = common.StatusDeployed, common.StatusFailed, common.StatusSuperseded
	tests := map[string]struct {
		past   history
		matter []int
	}{
		"installed":                   {history{attempt(deployed, "a")}, []int{1}},
		"upgraded":                    {history{attempt(superseded, "a"), attempt(deployed, "b")}, []int{2}},
		"first attempt failed":        {history{attempt(failed, "a")}, []int{1}},
		"upgrade failed":              {history{attempt(deployed, "a"), attempt(failed, "b")}, []int{1, 2}},
		"failed again":                {history{attempt(deployed, "a"), attempt(failed, "b"), attempt(failed, "b")}, []int{1, 3}},
		"failed with something else":  {history{attempt(deployed, "a"), attempt(failed, "b"), attempt(failed, "c")}, []int{1, 2, 3}},
		"failed with more":            {history{attempt(deployed, "a"), attempt(failed, "b"), attempt(failed, "b", "c")}, []int{1, 3}},
		"failed with less":            {history{attempt(deployed, "a"), attempt(failed, "b", "c"), attempt(failed, "b")}, []int{1, 2, 3}},
		"failed before":               {history{attempt(failed, "a"), attempt(failed, "b"), attempt(deployed, "c")}, []int{3}},
		"killed between two records":  {history{attempt(superseded, "a"), attempt(failed, "b")}, []int{2}},
		"two that were never retired": {history{attempt(deployed, "a"), attempt(deployed, "b"), attempt(failed, "c")}, []int{2, 3}},
		"last one superseded":         {history{attempt(superseded, "a"), attempt(superseded, "b")}, []int{2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for i := range tc.past {
				tc.past[i].Version = i + 1
			}
			matter, obsolete := tc.past.splitObsolete()
			var got []int
			for _, r := range matter {
				got = append(got, r.Version)
			}
			if diff := cmp.Diff(tc.matter, got); diff != "" {
				t.Errorf("records that matter (-want +got):\n%s", diff)
			}
			if len(matter)+len(obsolete) != len(tc.past) {
				t.Errorf("%d and %d are not %d", len(matter), len(obsolete), len(tc.past))
			}
		})
	}
}

func TestRemovalOrder(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, kind := range []string{"ConfigMap", "Boat", "MutatingWebhookConfiguration", "Deployment", "ValidatingWebhookConfiguration"} {
		for _, name := range []string{"b", "a"} {
			object := &unstructured.Unstructured{}
			object.SetKind(kind)
			object.SetName(name)
			objects = append(objects, object)
		}
	}
	var got []string
	for _, object := range removalOrder(objects) {
		got = append(got, fmt.Sprint(object.GetKind(), " ", object.GetName()))
	}
	want := []string{
		"ValidatingWebhookConfiguration a", "ValidatingWebhookConfiguration b",
		"MutatingWebhookConfiguration a", "MutatingWebhookConfiguration b",
		"Deployment a", "Deployment b", "ConfigMap a", "ConfigMap b", "Boat a", "Boat b",
	}
	if !slices.Equal(want, got) {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
	}
}

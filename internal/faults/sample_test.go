package faults

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func wrote(resources ...string) Log {
	var log Log
	for _, resource := range resources {
		log = append(log, Entry{Request: Request{Verb: "patch", Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}}})
	}
	return log
}

func TestSample(t *testing.T) {
	tests := map[string]struct {
		full   string
		nth    int
		writes Log
		want   []int
	}{
		"first, last and what matches": {nth: 10, writes: wrote("pods", "pods", "secrets", "pods", "pods"), want: []int{1, 3, 5}},
		"every second":                 {nth: 2, writes: wrote("pods", "pods", "pods", "pods", "pods", "pods", "pods"), want: []int{1, 2, 4, 6, 7}},
		"of one":                       {nth: 2, writes: wrote("pods"), want: []int{1}},
		"in full":                      {full: "full", nth: 10, writes: wrote("pods", "pods", "pods"), want: []int{1, 2, 3}},
		"in something else than full":  {full: "few", nth: 10, writes: wrote("pods", "pods", "pods"), want: []int{1, 3}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FAIRLEAD_TESTS", tc.full)
			pick := Sample(tc.nth, To("secrets"))
			var got []int
			for k := 1; k <= len(tc.writes); k++ {
				if pick(k, tc.writes) {
					got = append(got, k)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAt(t *testing.T) {
	writes := wrote("pods", "secrets", "pods", "secrets", "secrets")
	writes[2].Verb = "delete"
	tests := map[string]struct {
		at   []string
		want []int
	}{
		"of a kind, from the first":             {at: []string{"secrets 1"}, want: []int{2}},
		"of a kind, from the last":              {at: []string{"secrets -2"}, want: []int{4}},
		"of a verb":                             {at: []string{"delete 1"}, want: []int{3}},
		"of all":                                {at: []string{"write 1", "write -1"}, want: []int{1, 5}},
		"by two names, for an action of either": {at: []string{"delete -1", "pods 2"}, want: []int{3, 3}},
	}
	choose := func(t testing.TB, at ...string) (chosen []int) {
		actions := map[string][]Action{}
		for _, name := range at {
			actions[name] = []Action{Conflict()}
		}
		pick := At(t, actions)
		for k := range len(writes) {
			for range pick(k+1, writes) {
				chosen = append(chosen, k+1)
			}
		}
		return chosen
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, choose(t, tc.at...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	heard := listen(t, func(t testing.TB) { choose(t, "secrets 1", "secrets 4") })
	if !strings.Contains(heard, `there is no write ["secrets 4"] among`) {
		t.Errorf("heard: %s", heard)
	}
}

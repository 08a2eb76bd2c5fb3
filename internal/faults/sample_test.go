package faults

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSample(t *testing.T) {
	wrote := func(resources ...string) Log {
		var log Log
		for _, resource := range resources {
			log = append(log, Entry{Request: Request{Verb: "patch", Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}}})
		}
		return log
	}
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

package passage

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEstimateOf(t *testing.T) {
	threes := Batching{Size: 3, Delay: 30 * time.Second}
	cases := map[string]struct {
		plan     Plan
		batching Batching
		now      int
		want     Estimate
	}{
		"nothing to do":      {planOf(), threes, 0, Estimate{0, 0}},
		"one batch":          {planOf(deploys("a b c")), threes, 0, Estimate{1, 0}},
		"three batches":      {planOf(deploys("a b c d e f g")), threes, 0, Estimate{3, time.Minute}},
		"without delay":      {planOf(deploys("a b c d e f g")), Batching{Size: 3}, 0, Estimate{3, 0}},
		"one at a time":      {planOf(deploys("a b c d e")), Batching{Delay: time.Minute}, 0, Estimate{5, 4 * time.Minute}},
		"priorities":         {planOf(deploys("a", priority(1)), deploys("b", priority(2)), deploys("c")), threes, 0, Estimate{3, time.Minute}},
		"namespaces first":   {planOf([]Step{relabel("shop")}, deploys("a b c d")), threes, 0, Estimate{2, 30 * time.Second}},
		"only namespaces":    {planOf([]Step{relabel("shop")}), threes, 0, Estimate{0, 0}},
		"first batch runs":   {planOf(deploys("a b c", running(1)), deploys("d e f g")), threes, 5, Estimate{3, time.Minute}},
		"amid a delay":       {planOf(deploys("a b c", done(1, 20)), deploys("d e f g")), threes, 30, Estimate{3, 50 * time.Second}},
		"amid one, cut off":  {planOf(deploys("a", done(1, 20)), deploys("b c d e f g")), threes, 30, Estimate{3, 80 * time.Second}},
		"after a delay":      {planOf(deploys("a b c", done(1, 20)), deploys("d e f g")), threes, 50, Estimate{3, 30 * time.Second}},
		"last batch runs":    {planOf(deploys("a b c", done(1, 20)), deploys("d", running(2))), threes, 55, Estimate{2, 0}},
		"a failure is fixed": {planOf(deploys("a", failed(1, 20)), deploys("b")), Batching{Size: 1, Delay: time.Minute, FailFast: true}, 20, Estimate{2, time.Minute}},
		"centuries":          {planOf(deploys("a", done(1, 0)), deploys("b c d")), Batching{Size: 1, Delay: math.MaxInt64}, 10, Estimate{4, math.MaxInt64}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, EstimateOf(tc.plan, tc.batching, at(tc.now))); diff != "" {
				t.Errorf("estimate (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("a hold does not change it", func(t *testing.T) {
		plan := planOf(deploys("a b c d"))
		plan.Hold = Hold("Paused", "paused")
		if diff := cmp.Diff(Estimate{2, 30 * time.Second}, EstimateOf(plan, threes, epoch)); diff != "" {
			t.Errorf("estimate (-want +got):\n%s", diff)
		}
	})
	t.Run("as JSON", func(t *testing.T) {
		got, err := json.Marshal(Estimate{3, 90 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"batches":3,"delays":"1m30s"}`, string(got)); diff != "" {
			t.Errorf("JSON (-want +got):\n%s", diff)
		}
	})
}

// TestEstimateComesTrue runs plans whose steps take no time at all: what is left
// is the delays.
func TestEstimateComesTrue(t *testing.T) {
	for size := range 9 {
		plan := planOf(deploys("a b c d e", priority(1)), deploys("f g h"), []Step{relabel("shop")})
		w := newWorld(t, plan, Batching{Size: size, Delay: 7 * time.Second})
		for _, step := range plan.Steps {
			w.takes[step.Object] = 0
		}
		want := EstimateOf(plan, w.batching, epoch)
		for {
			d, err := w.reconcile()
			if err != nil {
				t.Fatal(err)
			}
			if d.Settled() {
				if diff := cmp.Diff(want, Estimate{d.Batches, w.now.Sub(epoch)}); diff != "" {
					t.Errorf("size %d (-estimated +took):\n%s", size, diff)
				}
				break
			}
			w.now = w.wake(d)
		}
	}
}

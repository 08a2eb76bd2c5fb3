package passage

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCrashAtEveryWrite kills the process after its k-th write, for every k. It
// comes back at once or much later, and must end where an undisturbed run ends.
func TestCrashAtEveryWrite(t *testing.T) {
	plans := map[string]struct {
		plan     Plan
		batching Batching
		fails    string
	}{
		"ten workloads in two namespaces": {
			plan:     planOf([]Step{relabel("shop"), relabel("pay")}, deploys("a b c d e f g h i j")),
			batching: Batching{Size: 3, Delay: 30 * time.Second},
		},
		"with failures": {
			plan:     planOf(deploys("a b c d e f g")),
			batching: Batching{Size: 3, Delay: 30 * time.Second},
			fails:    "b g",
		},
		"fail fast": {
			plan:     planOf(deploys("a b c d e f g")),
			batching: Batching{Size: 2, FailFast: true},
			// The last of its batch: had those after it not been started when it
			// failed, they would rightly not be.
			fails: "d",
		},
		"priorities": {
			plan:     planOf(deploys("a b", priority(2)), deploys("c d e f", priority(1)), deploys("g h", priority(2))),
			batching: Batching{Size: 3, Delay: time.Second},
		},
	}
	// Back later, what was started has settled, and the rest is started later: only
	// the times may differ.
	downtimes := map[string]struct {
		downtime time.Duration
		compare  func(Step) Step
	}{
		"back at once": {0, func(s Step) Step { return s }},
		"back later":   {time.Minute, func(s Step) Step { s.StartedAt, s.EndedAt = time.Time{}, time.Time{}; return s }},
	}

	for name, tc := range plans {
		for when, back := range downtimes {
			t.Run(name+"/"+when, func(t *testing.T) {
				run := func(k int) *world {
					w := newWorld(t, tc.plan, tc.batching)
					for _, step := range deploys(tc.fails) {
						w.fails[step.Object] = true
					}
					alive := false
					w.mayWrite = func() bool { return alive || w.writes < k }
					for {
						d, err := w.reconcile()
						if errors.Is(err, errDied) {
							alive = true
							w.now = w.now.Add(back.downtime)
							continue
						}
						next := w.wake(d)
						if next.IsZero() {
							return w
						}
						w.now = next
					}
				}
				ends := func(w *world) (all []Step) {
					for _, step := range w.plan.Steps {
						all = append(all, back.compare(step))
					}
					return all
				}

				undisturbed := run(1 << 30)
				if undisturbed.writes < len(tc.plan.Steps) {
					t.Fatalf("only %d writes for %d steps", undisturbed.writes, len(tc.plan.Steps))
				}
				for k := range undisturbed.writes + 1 {
					crashed := run(k)
					if diff := cmp.Diff(ends(undisturbed), ends(crashed)); diff != "" {
						t.Errorf("killed after write %d (-undisturbed +crashed):\n%s", k, diff)
					}
					if crashed.writes != undisturbed.writes {
						t.Errorf("killed after write %d: %d writes in all, undisturbed %d", k, crashed.writes, undisturbed.writes)
					}
					if crashed.peak > tc.batching.Size {
						t.Errorf("killed after write %d: %d ran at once", k, crashed.peak)
					}
				}
			})
		}
	}
}

package rollout

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// end is what must be the same, however often the operator was killed on the way.
type end struct {
	Status v1alpha2.MaterializeStatus
	// Objects have digests of what was applied.
	Objects map[string]string
}

var clock = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`)

func endOf(c *cluster) end {
	e := end{Status: *c.m.Status.DeepCopy(), Objects: map[string]string{}}
	e.Status.RolloutRequestedAt = nil
	for i := range e.Status.Conditions {
		condition := &e.Status.Conditions[i]
		condition.LastTransitionTime.Reset()
		condition.Message = clock.ReplaceAllString(condition.Message, "<time>")
	}
	for key, object := range c.objects {
		e.Objects[key.Kind+" "+name(key)] = object.GetAnnotations()[v1alpha2.AnnotationApplied]
	}
	return e
}

// TestCrashAtEveryWrite kills the operator after its k-th write, requests to environmentd included, for every k, and again
// right after it came back. It must end where an undisturbed one ends, and the invariants hold all the way.
func TestCrashAtEveryWrite(t *testing.T) {
	// Those that begin with the same first deploy leave its writes to the first of them.
	const (
		first  = "from the first deploy to the second generation"
		theirs = "with downtime, somebody else's, timed out"
	)
	cases := map[string]struct {
		setup func(*cluster)
		want  int64
	}{
		first:                      {func(c *cluster) { c.roll(20, "v2") }, 2},
		"changed before promoting": {func(c *cluster) { c.roll(20, "v2"); c.roll(24, "v3") }, 2},
		"changed back":             {func(c *cluster) { c.roll(20, "v2"); c.roll(24, "v1") }, 1},
		"with downtime": {func(c *cluster) {
			c.m = maker{c.m}.strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime).Materialize
			c.roll(20, "v2")
		}, 2},
		"with downtime, changed back": {func(c *cluster) {
			c.m = maker{c.m}.strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime).Materialize
			c.roll(20, "v2")
			c.roll(22, "v1")
		}, 1},
		theirs: {func(c *cluster) {
			served := func() maker {
				return makeMaterialize().strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime).timeout("30s")
			}
			c.m = maker{c.m}.spec(served()).serving(c.t, 1, served()).Materialize
			c.others(1, v1alpha2.LeaderIsLeader)
			c.on(18, "", func() { c.starts = 0 })
			c.roll(20, "v2")
			c.on(40, "", func() { c.starts = 3 * time.Second })
		}, 1},
		"promoted, taken back, and asked for again": {func(c *cluster) {
			second := makeMaterialize().image("v2").strategy(v1alpha2.RolloutManuallyPromote)
			c.on(20, "", func() { c.edit(func(b maker) { b.spec(second) }) })
			c.on(21, "", func() { c.edit(func(b maker) { b.forcePromote(hashOf(c.t, second)) }) })
			c.on(22, "", func() { c.edit(func(b maker) { b.spec(makeMaterialize()).forcePromote(hashOf(c.t, second)) }) })
			c.on(40, "", func() { c.edit(func(b maker) { b.spec(second).forcePromote(hashOf(c.t, second)) }) })
		}, 1},
		"timed out": {func(c *cluster) {
			c.m = maker{c.m}.timeout("30s").Materialize
			c.on(18, "", func() { c.catchesUp = 0 })
			c.roll(20, "v2")
		}, 1},
	}
	for name, story := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deployed := 0
			run := func(downtime time.Duration, dies ...int) *cluster {
				c := newCluster(t)
				c.starts, c.catchesUp = 3*time.Second, 2*time.Second
				if name != first && name != theirs {
					c.on(17, "", func() { deployed = c.writes })
				}
				story.setup(c)
				c.run(at(100), func() bool {
					if len(dies) > 0 && c.writes == dies[0] {
						dies = dies[1:]
						return false
					}
					return true
				}, downtime)
				return c
			}
			undisturbed := run(0)
			want := endOf(undisturbed)
			if want.Status.ActiveGeneration != story.want {
				t.Fatalf("this is not the rollout that is meant: %+v", want.Status)
			}
			if name != first && name != theirs && deployed == 0 {
				t.Fatal("the first deploy takes too long")
			}
			for k := deployed; k < undisturbed.writes; k++ {
				if diff := cmp.Diff(want, endOf(run(2*time.Second, k, k, k+1))); diff != "" {
					t.Fatalf("killed after write %d of %d, twice, and after the next (-undisturbed +crashed):\n%s", k, undisturbed.writes, diff)
				}
			}
		})
	}
}

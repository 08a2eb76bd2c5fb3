package rollout

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// TestRandom lets people, pods and the operator do whatever comes to their minds. The invariants hold all the way, and when
// everybody has calmed down, what was last asked for serves.
func TestRandom(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t)
			c.starts, c.catchesUp = 4*time.Second, 6*time.Second
			var story []string
			c.tell = func(format string, args ...any) {
				story = append(story, fmt.Sprintf("%4.0f  %s", c.now.Sub(epoch).Seconds(), fmt.Sprintf(format, args...)))
			}
			for range 12 {
				c.mischief(random)
			}
			c.on(220, "all calm down", func() {
				c.starts, c.catchesUp = 4*time.Second, 6*time.Second
				c.edit(func(b maker) {
					delete(b.Annotations, fairlead.AnnotationPaused)
					b.strategy(v1alpha2.RolloutWaitUntilReady).timeout("24h").image("v9")
				})
				for _, daemon := range c.daemons {
					if daemon.status == v1alpha2.LeaderInitializing {
						daemon.status = v1alpha2.LeaderReadyToPromote
					}
				}
			})
			kills := 3
			c.run(at(500), func() bool {
				if c.now.Before(at(220)) && kills > 0 && random.IntN(25) == 0 {
					kills--
					return false
				}
				return true
			}, time.Duration(random.IntN(8))*time.Second)
			c.checkEnd()
			if t.Failed() {
				t.Log(strings.Join(story, "\n"))
			}
		})
	}
}

// mischief is one thing that somebody does at some time.
func (c *cluster) mischief(random *rand.Rand) {
	second := 1 + random.IntN(200)
	edit := func(reported string, how func(maker)) { c.on(second, reported, func() { c.edit(how) }) }
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	switch random.IntN(10) {
	case 0, 1, 2:
		tag := pick("v1", "v2", "v3")
		edit("image "+tag, func(b maker) { b.image(tag) })
	case 3:
		strategy := v1alpha2.RolloutStrategy(pick("WaitUntilReady", "ManuallyPromote", "ImmediatelyPromoteCausingDowntime"))
		edit(string(strategy), func(b maker) { b.strategy(strategy) })
	case 4:
		edit("forcePromote what is asked for", func(b maker) { b.forcePromote(b.Status.RequestedRolloutHash) })
	case 5:
		edit("pause", func(b maker) { b.annotate(fairlead.AnnotationPaused, "true") })
		second += 1 + random.IntN(20)
		edit("resume", func(b maker) { delete(b.Annotations, fairlead.AnnotationPaused) })
	case 6:
		timeout := v1alpha2.Duration(pick("5s", "20s", "24h"))
		edit("timeout "+string(timeout), func(b maker) { b.timeout(timeout) })
	case 7:
		edit("balancerdReplicas", func(b maker) { b.Spec.BalancerdReplicas = ptr.To(int32(second)) })
	case 8:
		chosen := random.Uint64()
		c.on(second, "somebody deletes something", func() {
			keys := slices.SortedFunc(maps.Keys(c.objects), func(a, b passage.Object) int { return strings.Compare(a.String(), b.String()) })
			if len(keys) > 0 {
				key := keys[chosen%uint64(len(keys))]
				c.tell("         it is %s", key)
				delete(c.daemons, c.objects[key].GetUID())
				delete(c.objects, key)
				c.changed()
			}
		})
	case 9:
		c.on(second, "environmentds that do not lead start anew", func() {
			for _, daemon := range c.daemons {
				if daemon.status == v1alpha2.LeaderReadyToPromote {
					daemon.status = v1alpha2.LeaderInitializing
					c.later(5*time.Second, "", func() { daemon.status = v1alpha2.LeaderReadyToPromote })
				}
			}
		})
	}
}

// checkEnd: what was last asked for serves, and nothing else is there.
func (c *cluster) checkEnd() {
	c.t.Helper()
	status, active := c.m.Status, fmt.Sprint(c.m.Status.ActiveGeneration)
	if !hasReason(status, v1alpha2.ReasonApplied) || status.LastCompletedRolloutEnvironmentdImageRef != "materialize/environmentd:v9" {
		c.t.Errorf("in the end it is %+v", status)
	}
	if c.public() != active {
		c.t.Errorf("users are led to generation %s, and %s serves", c.public(), active)
	}
	if len(c.objects) != 12 {
		c.t.Errorf("there are %d objects", len(c.objects))
	}
	for key, object := range c.objects {
		if generation := objects.GenerationOf(object); generation != 0 && fmt.Sprint(generation) != active {
			c.t.Errorf("%s is still there", key)
		}
	}
}

package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

// newer is the hasher of a Fairlead to come, whose hashes have nothing in common with today's.
var newer = hasher{2, hashOfNewer, func(version int32, m *v1alpha2.Materialize) (string, error) {
	if version == 2 {
		return hashOfNewer(m), nil
	}
	return hash.With(version, m)
}}

func hashOfNewer(m *v1alpha2.Materialize) string {
	digest := sha256.Sum256([]byte(hash.Of(m)))
	return hex.EncodeToString(digest[:])
}

// TestAnotherAlgorithm replaces Fairlead by one that hashes in another way, at every moment of a rollout.
func TestAnotherAlgorithm(t *testing.T) {
	cases := map[string]struct {
		setup func(*cluster)
		// at is when it is replaced, in seconds.
		at int
		// want is the generation that serves in the end, and writes how many the newer one needs for that; 0 is any number.
		want   int64
		writes int
	}{
		"nothing to do":            {func(*cluster) {}, 100, 1, 1},
		"while pods start":         {func(c *cluster) { c.roll(100, "v2") }, 105, 2, 0},
		"while it catches up":      {func(c *cluster) { c.roll(100, "v2") }, 120, 2, 0},
		"while it takes over":      {func(c *cluster) { c.roll(100, "v2") }, 131, 2, 0},
		"while the old one goes":   {func(c *cluster) { c.roll(100, "v2") }, 135, 2, 0},
		"with a change that waits": {func(c *cluster) { c.roll(100, "v2"); c.roll(131, "v3") }, 132, 3, 0},
		"with a change made meanwhile": {func(c *cluster) {
			c.on(100, "", func() { c.process.dead = true; c.edit(func(b maker) { b.image("v2") }) })
		}, 100, 2, 0},
		"with a change taken back meanwhile": {func(c *cluster) {
			c.roll(100, "v2")
			c.on(120, "", func() { c.process.dead = true; c.edit(func(b maker) { b.image("v1") }) })
		}, 120, 1, 0},
	}
	for name, story := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			story.setup(c)
			alive := func() bool { return true }
			c.run(at(story.at), alive, 0)
			sets := map[string]bool{}
			for key, object := range c.objects {
				if key.Kind == "StatefulSet" {
					sets[string(object.GetUID())] = true
				}
			}
			before, writes := c.m.Status.DeepCopy(), c.writes
			c.hashes = newer
			c.run(at(1000), alive, 0)

			status := c.m.Status
			if !hasReason(status, v1alpha2.ReasonApplied) || status.ActiveGeneration != story.want {
				t.Errorf("generation %d serves, want %d: %+v", status.ActiveGeneration, story.want, status.Conditions)
			}
			want := newer.of(c.m)
			if status.RolloutHashVersion != 2 || status.LastCompletedRolloutHash != want || status.RequestedRolloutHash != want {
				t.Errorf("hashes: %+v, want %s", status, want)
			}
			if got := c.writes - writes; story.writes != 0 && got != story.writes {
				t.Errorf("it took %d writes, want %d", got, story.writes)
			}
			if story.want == before.ActiveGeneration+1 {
				if set := c.set(fmt.Sprintf("mz%s-environmentd-%d", testID, story.want)); len(sets) == 2 && !sets[string(set.GetUID())] {
					t.Error("the rollout that was underway began anew")
				}
			}
		})
	}
}

// TestHashOfNobody: a hash that nothing left is of is that of another spec.
func TestHashOfNobody(t *testing.T) {
	s := seeing(t, makeMaterialize().image("v2").serving(t, 1, makeMaterialize()))
	s.HashVersion = newer.version
	s.rehash(newer)
	if s.Completed() == s.Hash {
		t.Error("it is taken for the hash of the spec")
	}
	if s.UnknownHash != nil {
		t.Error(s.UnknownHash)
	}
}

package desired

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// long are values of the greatest length that can be recorded.
func long(count int) []string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("%s-%05d", strings.Repeat("v", 247), i))
	}
	return all
}

// A record of any size fits into ConfigMaps, also when no value is served: all are then in the annotation, beside the VIPs.
func TestShardsFit(t *testing.T) {
	now := time.Unix(1000, 123456789)
	all := TagVIPs{}.Allocate(long(4_000), Ranges{}.OrDefaults().Tags, 0, time.Hour, now)
	gone := all.Allocate(nil, Ranges{}.OrDefaults().Tags, 0, time.Hour, now)
	if len(gone.VIPs) != 4_000 || len(gone.UnservedSince) != 4_000 {
		t.Fatalf("%d of %d are kept", len(gone.UnservedSince), len(gone.VIPs))
	}
	// In one shard, as earlier versions record it, and in those that all are recorded in.
	for name, there := range map[string][]TagVIPs{"none yet": nil, "one that is too large": {all.TagVIPs}, "as they are": all.Shards(nil)} {
		shards := gone.Shards(there)
		if !reflect.DeepEqual(gone.TagVIPs, MergeShards(shards)) {
			t.Errorf("%s: the shards do not have all values", name)
		}
		for i, shard := range shards {
			annotation, err := json.Marshal(shard.UnservedSince)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(shard.VIPs)
			if err != nil {
				t.Fatal(err)
			}
			// Annotations of an object have 256 KiB, of which others have some, and the data of a ConfigMap has 1 MiB.
			if len(annotation) > 240<<10 || len(data) > 512<<10 {
				t.Errorf("%s: shard %d has %d bytes of VIPs, and %d of times", name, i, len(data), len(annotation))
			}
		}
		if !reflect.DeepEqual(shards, gone.Shards(shards)) {
			t.Errorf("%s: shards change although nothing does", name)
		}
	}
}

// Whatever comes and goes, and wherever a process dies while it writes shards from the last to the first, no value loses its VIP.
func TestShardsSurviveCrash(t *testing.T) {
	names := long(1500)
	all := TagVIPs{}.Allocate(names[:1200], Ranges{}.OrDefaults().Tags, 0, time.Minute, time.Unix(0, 0))
	of := func(names []string) TagVIPs {
		part := TagVIPs{VIPs: map[string]string{}}
		for _, name := range names {
			part.VIPs[name] = all.VIPs[name]
		}
		return part
	}
	for name, recorded := range map[string][]TagVIPs{
		"one that is too large":            {all.TagVIPs},
		"a later one that is too large":    {of(names[:100]), of(names[100:1200])},
		"one in the middle that is so too": {of(names[:100]), of(names[100:1100]), of(names[1100:1200])},
	} {
		t.Run(name, func(t *testing.T) { crashWhileWriting(t, names, recorded) })
	}
}

func crashWhileWriting(t *testing.T, names []string, recorded []TagVIPs) {
	random := rand.New(rand.NewPCG(3, 4))
	from, now := Ranges{}.OrDefaults().Tags, time.Unix(0, 0)
	for round := range 20 {
		now = now.Add(10 * time.Second)
		var wanted []string
		for _, name := range names {
			if random.IntN(3) > 0 {
				wanted = append(wanted, name)
			}
		}
		before := MergeShards(recorded)
		next := before.Allocate(wanted, from, 0, time.Minute, now)
		shards := next.Shards(recorded)
		written := slices.Clone(recorded)
		for len(written) < len(shards) {
			written = append(written, TagVIPs{})
		}
		goesOn := random.IntN(len(shards))
		for i := len(shards) - 1; i >= 0; i-- {
			written[i] = shards[i]
			merged := MergeShards(written)
			for service, vip := range merged.VIPs {
				if was, is := before.VIPs[service], next.VIPs[service]; vip != was && vip != is {
					t.Fatalf("round %d: %s has %s, before %s, then %s", round, service, vip, was, is)
				}
			}
			for service := range before.VIPs {
				if _, kept := next.VIPs[service]; kept && merged.VIPs[service] == "" {
					t.Fatalf("round %d: %s is lost when shard %d is not written", round, service, i-1)
				}
			}
			if i == goesOn {
				recorded = slices.Clone(written)
			}
		}
	}
}

func TestShardNames(t *testing.T) {
	for _, shard := range []int{0, 1, 12} {
		if got, found := ShardOf(VIPShard("default", shard), "default"); !found || got != shard {
			t.Errorf("shard %d is read as %d, %t", shard, got, found)
		}
	}
	for _, name := range []string{VIPConfigMap("other"), VIPConfigMap("default") + "-0", VIPConfigMap("default") + "-01", VIPConfigMap("default") + "-x", VIPConfigMap("default") + "--1", "x"} {
		if shard, found := ShardOf(name, "default"); found {
			t.Errorf("%s is shard %d", name, shard)
		}
	}
}

// One namespace cannot use up the range; what it has it keeps, and others get theirs.
func TestNamespaceShare(t *testing.T) {
	narrow, now := netip.MustParsePrefix("240.0.0.0/28"), time.Unix(1000, 0)
	var greedy []string
	for i := range 50 {
		greedy = append(greedy, fmt.Sprintf("s%02d_bank_svc_80", i))
	}
	share := ShareOf(narrow, 0)
	got := TagVIPs{}.Allocate(append([]string{"zoo_shop_svc_80", "zone"}, greedy...), narrow, share, time.Minute, now)
	if share != 8 || len(got.OverShare) != 42 || len(got.Unallocated) > 0 || got.VIPs["zoo_shop_svc_80"] == "" || got.VIPs["zone"] == "" {
		t.Errorf("of a share of %d, %d values are over it, and the VIPs are %v", share, len(got.OverShare), got.VIPs)
	}
	// Values that are gone hold their VIPs for the grace period: to replace them does not give more.
	churn := got.Allocate([]string{"new_bank_svc_80", "new_shop_svc_80"}, narrow, share, time.Minute, now)
	if !slices.Equal(churn.OverShare, []string{"new_bank_svc_80"}) || churn.VIPs["new_shop_svc_80"] == "" {
		t.Errorf("%v are over the share", churn.OverShare)
	}
	less := got.Allocate(greedy, narrow, 2, time.Minute, now)
	for service, vip := range got.VIPs {
		if less.VIPs[service] != vip {
			t.Errorf("%s loses %s by a smaller share", service, vip)
		}
	}
	for configured, want := range map[int]int{0: 8192, 3: 3} {
		if got := ShareOf(Ranges{}.OrDefaults().Tags, configured); got != want {
			t.Errorf("the share is %d, want %d", got, want)
		}
	}
}

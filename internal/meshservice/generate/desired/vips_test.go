package desired

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPick(t *testing.T) {
	wide := Ranges{}.OrDefaults().Services
	none := func(netip.Addr) bool { return false }
	first, ok := PickAddress(wide, "backend", none)
	again, _ := PickAddress(wide, "backend", none)
	if !ok || first != again || !wide.Contains(first) {
		t.Errorf("got %s, then %s", first, again)
	}
	other, ok := PickAddress(wide, "backend", func(a netip.Addr) bool { return a == first })
	if !ok || other != first.Next() {
		t.Errorf("got %s after %s", other, first)
	}
	narrow, taken := netip.MustParsePrefix("241.0.0.0/29"), map[netip.Addr]bool{}
	for i := range 6 {
		address, ok := PickAddress(narrow, fmt.Sprint(i), func(a netip.Addr) bool { return taken[a] })
		if !ok || taken[address] || !narrow.Contains(address) {
			t.Fatalf("got %s, %v, with %d taken", address, ok, i)
		}
		taken[address] = true
	}
	if address, ok := PickAddress(narrow, "one more", func(a netip.Addr) bool { return taken[a] }); ok {
		t.Errorf("got %s of a range that is exhausted", address)
	}
	for _, text := range []string{"241.0.0.7/32", "241.0.0.6/31"} {
		if address, ok := PickAddress(netip.MustParsePrefix(text), "x", none); !ok {
			t.Errorf("of %s got %s, %v", text, address, ok)
		}
	}
}

func TestTagVIPs(t *testing.T) {
	wide, start := Ranges{}.OrDefaults().Tags, time.Unix(1000, 0).UTC()
	one := TagVIPs{}.Allocate([]string{"b", "a", "a"}, wide, 0, time.Minute, start)
	if len(one.VIPs) != 2 || one.VIPs["a"] == one.VIPs["b"] || one.RequeueAfter != 0 {
		t.Fatalf("got %+v", one)
	}
	t.Run("stay what they are", func(t *testing.T) {
		if diff := cmp.Diff(one, one.Allocate([]string{"a", "b"}, wide, 0, time.Minute, start.Add(time.Hour))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("stay for the grace", func(t *testing.T) {
		gone := one.Allocate([]string{"a"}, wide, 0, time.Minute, start)
		if gone.VIPs["b"] != one.VIPs["b"] || !gone.UnservedSince["b"].Equal(start) || gone.RequeueAfter != time.Minute {
			t.Errorf("got %+v", gone)
		}
		later := gone.Allocate([]string{"a"}, wide, 0, time.Minute, start.Add(20*time.Second))
		if later.RequeueAfter != 40*time.Second || !later.UnservedSince["b"].Equal(start) {
			t.Errorf("20 s later %+v", later)
		}
		back := later.Allocate([]string{"a", "b"}, wide, 0, time.Minute, start.Add(30*time.Second))
		if diff := cmp.Diff(one, back); diff != "" {
			t.Error(diff)
		}
		freed := later.Allocate([]string{"a"}, wide, 0, time.Minute, start.Add(time.Minute))
		if len(freed.VIPs) != 1 || len(freed.UnservedSince) != 0 || freed.RequeueAfter != 0 {
			t.Errorf("after the grace %+v", freed)
		}
	})
	t.Run("found twice", func(t *testing.T) {
		got := TagVIPs{VIPs: map[string]string{"a": "240.0.0.5", "b": "240.0.0.5", "c": "10.0.0.1", "d": "?"}}.Allocate([]string{"a", "b", "c", "d"}, wide, 0, time.Minute, start)
		seen := map[string]bool{}
		for service, address := range got.VIPs {
			if seen[address] || !wide.Contains(netip.MustParseAddr(address)) {
				t.Errorf("%s has %s", service, address)
			}
			seen[address] = true
		}
		if got.VIPs["a"] != "240.0.0.5" || len(seen) != 4 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("exhausted", func(t *testing.T) {
		got := TagVIPs{}.Allocate([]string{"a", "b", "c"}, netip.MustParsePrefix("240.0.0.0/30"), 0, time.Minute, start)
		if diff := cmp.Diff([]string{"c"}, got.Unallocated); diff != "" || len(got.VIPs) != 2 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("unfit", func(t *testing.T) {
		got := TagVIPs{}.Allocate([]string{"a", "with space"}, wide, 0, time.Minute, start)
		if diff := cmp.Diff([]string{"with space"}, got.Invalid); diff != "" || len(got.VIPs) != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

// Whatever comes and goes, no address has two owners, and nobody's address changes while it is there.
func TestTagVIPsAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	narrow, now := netip.MustParsePrefix("240.0.0.0/26"), time.Unix(0, 0)
	var tags TagVIPs
	there := map[string]bool{}
	for range 2000 {
		service := fmt.Sprint("s", random.IntN(80))
		there[service] = !there[service]
		now = now.Add(time.Duration(random.IntN(20)) * time.Second)
		var wanted []string
		for service, is := range there {
			if is {
				wanted = append(wanted, service)
			}
		}
		next := tags.Allocate(wanted, narrow, 0, time.Minute, now)
		owners := map[string]string{}
		for service, address := range next.VIPs {
			if other, found := owners[address]; found {
				t.Fatalf("%s and %s both have %s", service, other, address)
			}
			owners[address] = service
			if before := tags.VIPs[service]; before != "" && before != address {
				t.Fatalf("%s had %s and has %s", service, before, address)
			}
		}
		for _, service := range wanted {
			if next.VIPs[service] == "" && len(next.VIPs) < 62 {
				t.Fatalf("%s has none of %d", service, len(next.VIPs))
			}
		}
		tags = next.TagVIPs
	}
}

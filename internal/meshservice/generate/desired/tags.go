package desired

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Tags are the virtual addresses of values of kuma.io/service.
type Tags struct {
	VIPs map[string]string
	// Gone is since when nothing serves a value that has an address.
	Gone map[string]time.Time
}

// Outcome is what became of the values that should have an address.
type Outcome struct {
	Tags
	// Without are those for which there was none left.
	Without []string
	// Unfit are those that cannot be recorded.
	Unfit []string
	// Again is when time alone changes something; zero if it does not.
	Again time.Duration
}

// Next gives an address to each of the values, keeps those that are given, and frees those of values that have been gone
// for the grace.
func (t Tags) Next(wanted []string, from netip.Prefix, grace time.Duration, now time.Time) Outcome {
	o := Outcome{Tags: Tags{VIPs: map[string]string{}, Gone: map[string]time.Time{}}}
	wanted = slices.Compact(slices.Sorted(slices.Values(wanted)))
	taken := map[netip.Addr]bool{}
	for _, service := range slices.Sorted(maps.Keys(t.VIPs)) {
		address, err := netip.ParseAddr(t.VIPs[service])
		if err != nil || !from.Contains(address) || taken[address] {
			continue
		}
		if _, found := slices.BinarySearch(wanted, service); !found {
			since, known := t.Gone[service]
			if !known || since.After(now) {
				since = now
			}
			left := grace - now.Sub(since)
			if left <= 0 {
				continue
			}
			o.Gone[service] = since
			if o.Again == 0 || left < o.Again {
				o.Again = left
			}
		}
		taken[address], o.VIPs[service] = true, address.String()
	}
	for _, service := range wanted {
		if o.VIPs[service] != "" {
			continue
		}
		if validation.IsConfigMapKey(service) != nil {
			o.Unfit = append(o.Unfit, service)
			continue
		}
		address, found := Pick(from, service, func(a netip.Addr) bool { return taken[a] })
		if !found {
			o.Without = append(o.Without, service)
			continue
		}
		taken[address], o.VIPs[service] = true, address.String()
	}
	return o
}

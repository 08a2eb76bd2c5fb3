package desired

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TagsConfigMap is the name of the ConfigMap, in the system namespace, that records the VIP of each value of kuma.io/service of a
// mesh.
func TagsConfigMap(mesh string) string { return "fairlead-mesh-" + mesh + "-tags" }

// Tags are the virtual addresses of values of kuma.io/service.
type Tags struct {
	VIPs map[string]string
	// UnservedSince is since when nothing serves a value that has an address.
	UnservedSince map[string]time.Time
}

// Allocation is what became of the values that should have an address.
type Allocation struct {
	Tags
	// Unallocated are those for which there was none left.
	Unallocated []string
	// Invalid are those that cannot be recorded.
	Invalid []string
	// RequeueAfter is when time alone changes something; zero if it does not.
	RequeueAfter time.Duration
}

// Allocate gives an address to each of the values, keeps those that are given, and frees those of values that have been gone
// for the grace.
func (t Tags) Allocate(wanted []string, from netip.Prefix, grace time.Duration, now time.Time) Allocation {
	o := Allocation{Tags: Tags{VIPs: map[string]string{}, UnservedSince: map[string]time.Time{}}}
	wanted = slices.Compact(slices.Sorted(slices.Values(wanted)))
	taken := map[netip.Addr]bool{}
	for _, service := range slices.Sorted(maps.Keys(t.VIPs)) {
		address, err := netip.ParseAddr(t.VIPs[service])
		if err != nil || !from.Contains(address) || taken[address] {
			continue
		}
		if _, found := slices.BinarySearch(wanted, service); !found {
			since, known := t.UnservedSince[service]
			if !known || since.After(now) {
				since = now
			}
			left := grace - now.Sub(since)
			if left <= 0 {
				continue
			}
			o.UnservedSince[service] = since
			if o.RequeueAfter == 0 || left < o.RequeueAfter {
				o.RequeueAfter = left
			}
		}
		taken[address], o.VIPs[service] = true, address.String()
	}
	for _, service := range wanted {
		if o.VIPs[service] != "" {
			continue
		}
		if validation.IsConfigMapKey(service) != nil {
			o.Invalid = append(o.Invalid, service)
			continue
		}
		address, found := PickAddress(from, service, func(a netip.Addr) bool { return taken[a] })
		if !found {
			o.Unallocated = append(o.Unallocated, service)
			continue
		}
		taken[address], o.VIPs[service] = true, address.String()
	}
	return o
}

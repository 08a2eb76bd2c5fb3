package desired

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// VIPConfigMap is the name of the ConfigMap, in the system namespace, that records the VIP of each value of kuma.io/service of a
// mesh.
func VIPConfigMap(mesh string) string { return "fairlead-mesh-" + mesh + "-tags" }

// TagVIPs are the VIPs of values of kuma.io/service.
type TagVIPs struct {
	VIPs map[string]string
	// UnservedSince is since when no Dataplane serves a value with a VIP.
	UnservedSince map[string]time.Time
}

// Allocation is the result of an allocation of VIPs.
type Allocation struct {
	TagVIPs
	// Unallocated are values without a VIP, since the range is exhausted.
	Unallocated []string
	// Invalid are values that cannot be recorded.
	Invalid []string
	// RequeueAfter is when only time changes the result; zero if it does not.
	RequeueAfter time.Duration
}

// Allocate allocates a VIP for each of the values, keeps allocated ones, and frees those of values that were not served for
// the grace period.
func (t TagVIPs) Allocate(wanted []string, from netip.Prefix, grace time.Duration, now time.Time) Allocation {
	o := Allocation{TagVIPs: TagVIPs{VIPs: map[string]string{}, UnservedSince: map[string]time.Time{}}}
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

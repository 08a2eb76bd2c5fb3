package desired

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Ranges are the CIDRs of VIPs.
type Ranges struct {
	// Tags is the range of values of kuma.io/service.
	Tags netip.Prefix
	// Services is the range of MeshServices and MeshMultiZoneServices without an address of Kubernetes.
	Services netip.Prefix
}

// OrDefaults are the ranges, with the default for each that is not given.
func (r Ranges) OrDefaults() Ranges {
	if !r.Tags.IsValid() {
		r.Tags = netip.MustParsePrefix("240.0.0.0/8")
	}
	if !r.Services.IsValid() {
		r.Services = netip.MustParsePrefix("241.0.0.0/8")
	}
	return r
}

// maxShare is the most VIPs of a namespace by default.
const maxShare = 8192

// ShareOf is how many VIPs of a range one namespace may have: those that are configured, or else half of the range, up to maxShare.
func ShareOf(from netip.Prefix, configured int) int {
	if configured > 0 {
		return configured
	}
	return int(min(uint64(1)<<(from.Addr().BitLen()-from.Bits())/2, maxShare))
}

// VIPKey is the key that the VIP of a service is picked by.
func VIPKey(service metav1.Object) string {
	return fmt.Sprintf("%T %s/%s", service, service.GetNamespace(), service.GetName())
}

// PickAddress returns the first free address from one on that depends on the key alone, so that a key gets the same address
// again. It fails if all are taken.
func PickAddress(from netip.Prefix, key string, taken func(netip.Addr) bool) (netip.Addr, bool) {
	size := uint64(1) << (from.Addr().BitLen() - from.Bits())
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key)) // cannot fail
	start := hash.Sum64()
	for i := range size {
		offset := (start + i) % size
		if size > 2 && (offset == 0 || offset == size-1) {
			// Network and broadcast address.
			continue
		}
		if address := plus(from.Masked().Addr(), uint32(offset)); !taken(address) {
			return address, true
		}
	}
	return netip.Addr{}, false
}

func plus(address netip.Addr, offset uint32) netip.Addr {
	b := address.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+offset)
	return netip.AddrFrom4(b)
}

// BackingService is the name of the Service, in the same namespace, whose addresses a MeshService has. It is empty where
// VIPs are always allocated: in universal, and for other zones.
func BackingService(service *kumav1alpha1.MeshService, where ZoneInfo) string {
	if where.IsUniversal() || !IdentityOf(service, where).Local {
		return ""
	}
	if IsGenerated(service, where) {
		return metav1.GetControllerOf(service).Name
	}
	return service.Name
}

// KubernetesAddresses are the addresses that Kubernetes gives a MeshService: those of its Service or, if that is headless,
// of the pod of the named Dataplane; each is nil if missing. Otherwise a VIP is allocated. The address in the Dataplane does not
// count: who writes it could give the MeshService the address of another's service.
func KubernetesAddresses(service *kumav1alpha1.MeshService, behind *corev1.Service, named *corev1.Pod, where ZoneInfo) (addresses []string, own bool) {
	switch generated := IsGenerated(service, where); {
	case behind == nil:
		return nil, generated
	case !IsHeadless(behind):
		for _, address := range behind.Spec.ClusterIPs {
			if _, err := netip.ParseAddr(address); err == nil {
				addresses = append(addresses, address)
			}
		}
		return addresses, len(addresses) > 0 || generated
	case service.Spec.Selector.DataplaneRef == nil:
		return nil, false
	}
	if named != nil && hasOwnAddress(named) && Selects(behind, named) {
		addresses = []string{named.Status.PodIP}
	}
	return addresses, true
}

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
	// OverShare are values without a VIP, since their namespace has its share.
	OverShare []string
	// RequeueAfter is when only time changes the result; zero if it does not.
	RequeueAfter time.Duration
}

// Allocate allocates a VIP for each of the values, keeps allocated ones, and frees those of values that were not served for
// the grace period. A namespace gets no more than its share; 0 is no limit.
func (t TagVIPs) Allocate(wanted []string, from netip.Prefix, share int, grace time.Duration, now time.Time) Allocation {
	o := Allocation{TagVIPs: TagVIPs{VIPs: map[string]string{}, UnservedSince: map[string]time.Time{}}}
	wanted = slices.Compact(slices.Sorted(slices.Values(wanted)))
	taken, has := map[netip.Addr]bool{}, map[string]int{}
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
		has[model.NamespaceOfTag(service)]++
	}
	for _, service := range wanted {
		if o.VIPs[service] != "" {
			continue
		}
		if validation.IsConfigMapKey(service) != nil {
			o.Invalid = append(o.Invalid, service)
			continue
		}
		namespace := model.NamespaceOfTag(service)
		if share > 0 && namespace != "" && has[namespace] >= share {
			o.OverShare = append(o.OverShare, service)
			continue
		}
		address, found := PickAddress(from, service, func(a netip.Addr) bool { return taken[a] })
		if !found {
			o.Unallocated = append(o.Unallocated, service)
			continue
		}
		taken[address], o.VIPs[service] = true, address.String()
		has[namespace]++
	}
	return o
}

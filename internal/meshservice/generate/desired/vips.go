package desired

import (
	"fmt"
	"hash/fnv"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	n += offset
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

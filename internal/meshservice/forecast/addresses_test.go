package forecast

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// Addresses are imagined in the range that the operator recorded.
func TestAddressesOfTheRange(t *testing.T) {
	for name, c := range map[string]struct{ recorded, want string }{
		"recorded":          {"10.9.0.0/30", "10.9.0.0/30"},
		"nothing recorded":  {"", "241.0.0.0/8"},
		"nonsense recorded": {"10.9", "241.0.0.0/8"},
		"IPv6 recorded":     {"fd00::/64", "241.0.0.0/8"},
	} {
		t.Run(name, func(t *testing.T) {
			tags := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kumav1alpha1.AnnotationServiceCIDR: c.recorded}}}
			w := NewMeshState(&kumav1alpha1.Mesh{}, tags, desired.ZoneInfo{Environment: desired.Universal, Zone: "east"})
			service := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Namespace: "kuma-system", Name: "backend"}}
			got := w.vipsOf(service, nil)
			if len(got) != 1 || !netip.MustParsePrefix(c.want).Contains(netip.MustParseAddr(got[0])) {
				t.Errorf("got %v, want one of %s", got, c.want)
			}
		})
	}
}

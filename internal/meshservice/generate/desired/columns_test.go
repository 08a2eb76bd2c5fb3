package desired

import (
	"fmt"
	"testing"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

func TestSetColumns(t *testing.T) {
	status := kumav1alpha1.ServiceStatus{
		Addresses: []kumav1alpha1.Address{{Hostname: "backend.a"}, {Hostname: "backend.b"}},
		VIPs:      []kumav1alpha1.VIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
	}
	SetColumns(&status, []string{"east", "east", "west"})
	if want := (kumav1alpha1.ServiceColumns{Hostnames: "backend.a,backend.b", VIPs: "10.0.0.1,fd00::1", Zones: "east,west"}); status.Columns != want {
		t.Errorf("got %+v", status.Columns)
	}
}

func TestPolicyColumns(t *testing.T) {
	entry := func(ref kumav1alpha1.ToTargetRef) kumav1alpha1.MeshTimeoutTo {
		return kumav1alpha1.MeshTimeoutTo{TargetRef: ref}
	}
	var many []kumav1alpha1.MeshTimeoutTo
	for i := range 12 {
		many = append(many, entry(kumav1alpha1.ToTargetRef{Kind: "MeshService", Name: fmt.Sprint(i)}))
	}
	for want, to := range map[string][]kumav1alpha1.MeshTimeoutTo{
		"":                               nil,
		"backend":                        {entry(kumav1alpha1.ToTargetRef{Kind: "MeshService", Name: "backend"})},
		"0,1,2,3,4,5,6,7,8,9,and 2 more": many,
		"Mesh,backend,app=cart,kuma.io/zone=east": {
			entry(kumav1alpha1.ToTargetRef{Kind: "Mesh"}), entry(kumav1alpha1.ToTargetRef{Kind: "MeshService", Name: "backend"}),
			entry(kumav1alpha1.ToTargetRef{Kind: "MeshService", Labels: map[string]string{"app": "cart", "kuma.io/zone": "east"}}),
		},
	} {
		t.Run(want, func(t *testing.T) {
			var p kumav1alpha1.MeshTimeout
			p.Spec.To = to
			if got := PolicyColumns(&p).To; got != want {
				t.Errorf("got %q", got)
			}
		})
	}
}

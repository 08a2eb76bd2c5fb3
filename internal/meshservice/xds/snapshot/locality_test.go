package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func portsOf(numbers ...int32) []kumav1alpha1.Port {
	var ports []kumav1alpha1.Port
	for _, number := range numbers {
		ports = append(ports, kumav1alpha1.Port{Port: number})
	}
	return ports
}

func aware(a kumav1alpha1.LocalityAwareness) *kumav1alpha1.MeshLoadBalancingStrategyConf {
	return &kumav1alpha1.MeshLoadBalancingStrategyConf{LocalityAwareness: &a}
}

func failover(list ...kumav1alpha1.Failover) *kumav1alpha1.MeshLoadBalancingStrategyConf {
	return aware(kumav1alpha1.LocalityAwareness{CrossZone: &kumav1alpha1.CrossZone{Failover: list}})
}

func to(kind string, zones ...string) kumav1alpha1.FailoverTo {
	return kumav1alpha1.FailoverTo{Type: kind, Zones: zones}
}

// In which order endpoints are called: priority:zone[/neighbours]=weight.
func TestLocalities(t *testing.T) {
	tag := model.TagKey("backend")
	service := model.Key{Kind: model.MeshService, Name: "backend", Port: 80}
	racks := kumav1alpha1.LocalZone{AffinityTags: []kumav1alpha1.AffinityTag{{Key: "rack"}, {Key: "room"}}}
	here := []model.Endpoint{
		{Address: "10.0.0.1", Port: 1, Zone: "east", Ready: true, Tags: map[string]string{"rack": "1", "room": "a"}},
		{Address: "10.0.0.2", Port: 1, Zone: "east", Ready: true, Tags: map[string]string{"rack": "2", "room": "a"}},
		{Address: "10.0.0.3", Port: 1, Zone: "east", Ready: true, Tags: map[string]string{"rack": "3", "room": "b"}},
		{Address: "10.0.0.4", Port: 1, Zone: "east"},
	}
	others := []model.Endpoint{
		{Address: "192.0.2.1", Port: 1, Zone: "north", Ready: true, Weight: 2},
		{Address: "192.0.2.2", Port: 1, Zone: "west", Ready: true, Weight: 5},
	}
	all := append(here[:len(here):len(here)], others...)
	for name, c := range map[string]struct {
		key        model.Key
		endpoints  []model.Endpoint
		localFirst bool
		conf       *kumav1alpha1.MeshLoadBalancingStrategyConf
		want       string
	}{
		"a tag, over all zones":                    {tag, all, false, nil, "0:east=3 0:north=2 0:west=5"},
		"a tag, with the own zone first":           {tag, all, true, nil, "0:east=3 1:north=2 1:west=5"},
		"none in the own zone":                     {tag, others, true, nil, "0:north=2 0:west=5"},
		"none at all":                              {tag, nil, true, nil, ""},
		"none that is ready":                       {tag, here[3:], false, nil, ""},
		"a MeshService":                            {service, here, false, nil, "0:east=3"},
		"a MeshService of another zone":            {service, others[1:], false, failover(), "0:west=5"},
		"the same address twice":                   {tag, append(others[:1:1], model.Endpoint{Address: "192.0.2.1", Port: 1, Zone: "west", Ready: true}), false, nil, "0:north=2"},
		"not aware of zones":                       {tag, all, true, aware(kumav1alpha1.LocalityAwareness{Disabled: ptr.To(true), LocalZone: &racks}), "0:east=3 0:north=2 0:west=5"},
		"aware of the own zone only":               {tag, all, false, aware(kumav1alpha1.LocalityAwareness{}), "0:east=3"},
		"failover to any":                          {tag, all, false, failover(kumav1alpha1.Failover{To: to("Any")}), "0:east=3 1:north=2 1:west=5"},
		"failover to one, then any":                {tag, all, false, failover(kumav1alpha1.Failover{To: to("Only", "west")}, kumav1alpha1.Failover{To: to("Any")}), "0:east=3 1:west=5 2:north=2"},
		"failover to all but one":                  {tag, all, false, failover(kumav1alpha1.Failover{To: to("AnyExcept", "west")}), "0:east=3 1:north=2"},
		"failover to none":                         {tag, all, false, failover(kumav1alpha1.Failover{To: to("None")}, kumav1alpha1.Failover{To: to("Any")}), "0:east=3"},
		"failover of another zone":                 {tag, all, false, failover(kumav1alpha1.Failover{From: &kumav1alpha1.FailoverFrom{Zones: []string{"west"}}, To: to("Any")}), "0:east=3"},
		"failover to one without, then any":        {tag, all, false, failover(kumav1alpha1.Failover{To: to("Only", "south")}, kumav1alpha1.Failover{To: to("Any")}), "0:east=3 1:north=2 1:west=5"},
		"neighbours first":                         {service, here, false, aware(kumav1alpha1.LocalityAwareness{LocalZone: &racks}), "0:east/rack=1=90 0:east/room=a=9 0:east=1"},
		"neighbours with weights":                  {service, here[:3], false, aware(kumav1alpha1.LocalityAwareness{LocalZone: &kumav1alpha1.LocalZone{AffinityTags: []kumav1alpha1.AffinityTag{{Key: "room", Weight: ptr.To[int32](7)}}}}), "0:east/room=a=7 0:east=1"},
		"neighbours by a tag that the proxy lacks": {service, here[:3], false, aware(kumav1alpha1.LocalityAwareness{LocalZone: &kumav1alpha1.LocalZone{AffinityTags: []kumav1alpha1.AffinityTag{{Key: "house"}}}}), "0:east=1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &destination{definition: definition{Destination: model.Destination{Target: model.Target{Key: c.key}}, endpoints: c.endpoints, localFirst: c.localFirst}}
			list, _ := localities(d, "east", c.conf, map[string]string{"rack": "1", "room": "a"})
			var got []string
			for _, l := range list {
				weight := l.Weight
				for _, e := range l.Endpoints {
					if l.Weight == 0 {
						weight += max(e.Weight, 1)
					}
				}
				text := fmt.Sprintf("%d:%s", l.Priority, l.Zone)
				if l.SubZone != "" {
					text += "/" + l.SubZone
				}
				got = append(got, fmt.Sprintf("%s=%d", text, weight))
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("they are %s, want %s", text, c.want)
			}
		})
	}
}

func TestOverprovisioning(t *testing.T) {
	for name, c := range map[string]struct {
		percentage intstr.IntOrString
		want       uint32
	}{
		"a number":      {intstr.FromInt32(50), 200},
		"text":          {intstr.FromString("62.5"), 160},
		"with its sign": {intstr.FromString("80%"), 125},
		"nonsense":      {intstr.FromString("half"), 0},
		"nothing":       {intstr.FromInt32(0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := overprovisioning(&kumav1alpha1.FailoverThreshold{Percentage: c.percentage}); got != c.want {
				t.Errorf("it is %d, want %d", got, c.want)
			}
		})
	}
}

func TestCommon(t *testing.T) {
	for _, c := range []struct{ a, b, want model.Protocol }{
		{"", "", ""}, {"", model.HTTP, model.HTTP}, {model.GRPC, model.GRPC, model.GRPC}, {model.GRPC, model.HTTP2, model.HTTP2},
		{model.HTTP, model.HTTP2, model.TCP}, {model.HTTP, model.TCP, model.TCP}, {model.GRPC, model.HTTP, model.TCP},
	} {
		if got, back := commonProtocol(c.a, c.b), commonProtocol(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q and %q have %q and %q in common, want %q", c.a, c.b, got, back, c.want)
		}
	}
}

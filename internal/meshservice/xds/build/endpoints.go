package build

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Locality is a set of endpoints with one priority and weight.
type Locality struct {
	Zone, SubZone string
	// Priority is 0 for the first. Priorities have no gaps.
	Priority uint32
	// Weight among those of the same priority. Zero is the sum of its endpoints.
	Weight    uint32
	Endpoints []model.Endpoint
}

// Endpoints builds the ClusterLoadAssignment of a cluster. Overprovisioning, if not zero, is the overprovisioning factor.
func Endpoints(cluster string, localities []Locality, overprovisioning uint32) *endpointv3.ClusterLoadAssignment {
	cla := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	if overprovisioning != 0 {
		cla.Policy = &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(overprovisioning)}
	}
	for _, l := range localities {
		weight := l.Weight
		endpoints := make([]*endpointv3.LbEndpoint, len(l.Endpoints))
		for i, e := range l.Endpoints {
			endpoints[i] = &endpointv3.LbEndpoint{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(e.Address, e.Port)}},
			}
			if e.Weight > 1 {
				endpoints[i].LoadBalancingWeight = wrapperspb.UInt32(e.Weight)
			}
			if l.Weight == 0 {
				weight += max(e.Weight, 1)
			}
		}
		cla.Endpoints = append(cla.Endpoints, &endpointv3.LocalityLbEndpoints{
			Locality:            &corev3.Locality{Zone: l.Zone, SubZone: l.SubZone},
			LbEndpoints:         endpoints,
			LoadBalancingWeight: wrapperspb.UInt32(weight),
			Priority:            l.Priority,
		})
	}
	return cla
}

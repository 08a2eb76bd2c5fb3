package resource_test

import (
	"slices"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

func TestEncoded(t *testing.T) {
	for name, value := range map[string][]byte{"a value": []byte("value"), "a long one": make([]byte, 70_000), "none": nil} {
		body := &anypb.Any{TypeUrl: resource.Cluster.URL(), Value: value}
		made := resource.New("backend", "v1", proto.Clone(body).(*anypb.Any))
		if !proto.Equal(made.Body, body) {
			t.Errorf("%s: the body is %v", name, made.Body)
		}
		for kind, r := range map[string]*resource.Resource{"made": made, "literal": {Name: "backend", Version: "v1", Body: body}} {
			var whole discovery.DiscoveryResponse
			if err := proto.Unmarshal(r.Encoded().ReadOnlyData(), &whole); err != nil {
				t.Fatalf("%s, %s: %v", name, kind, err)
			}
			if want := (&discovery.DiscoveryResponse{Resources: []*anypb.Any{body}}); !proto.Equal(&whole, want) {
				t.Errorf("%s, %s, state of the world: %v", name, kind, &whole)
			}
			var delta discovery.DeltaDiscoveryResponse
			if err := proto.Unmarshal(slices.Concat(r.Label().ReadOnlyData(), r.Encoded().ReadOnlyData()), &delta); err != nil {
				t.Fatalf("%s, %s: %v", name, kind, err)
			}
			if want := (&discovery.DeltaDiscoveryResponse{Resources: []*discovery.Resource{{Name: "backend", Version: "v1", Resource: body}}}); !proto.Equal(&delta, want) {
				t.Errorf("%s, %s, delta: %v", name, kind, &delta)
			}
		}
	}
}

// The value of a body takes its memory once.
func TestTheBodyIsPartOfTheEncoded(t *testing.T) {
	r := resource.New("backend", "v1", &anypb.Any{TypeUrl: resource.Cluster.URL(), Value: []byte("value")})
	encoded := r.Encoded().ReadOnlyData()
	if &encoded[len(encoded)-1] != &r.Body.Value[len(r.Body.Value)-1] {
		t.Error("the value is a copy")
	}
}

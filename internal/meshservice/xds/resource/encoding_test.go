package resource_test

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

func TestEncoded(t *testing.T) {
	for name, message := range map[string]proto.Message{
		"a value": &clusterv3.Cluster{Name: "backend"}, "a long one": &clusterv3.Cluster{Name: strings.Repeat("b", 70_000)}, "none": &clusterv3.Cluster{},
	} {
		body, err := anypb.New(message)
		if err != nil {
			t.Fatal(err)
		}
		made, err := resource.Marshal("backend", message)
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(made.Body, body) {
			t.Errorf("%s: the body is %v", name, made.Body)
		}
		for kind, r := range map[string]*resource.Resource{"made": made, "literal": {Name: "backend", Version: made.Version, Body: body}} {
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
			if want := (&discovery.DeltaDiscoveryResponse{Resources: []*discovery.Resource{{Name: "backend", Version: made.Version, Resource: body}}}); !proto.Equal(&delta, want) {
				t.Errorf("%s, %s, delta: %v", name, kind, &delta)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	versions := map[string]bool{}
	for _, name := range []string{"a", "b", "a"} {
		r, err := resource.Marshal("backend", &clusterv3.Cluster{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		versions[r.Version] = true
	}
	if len(versions) != 2 {
		t.Errorf("the versions are %v", versions)
	}
}

// The value of a body takes its memory once.
func TestTheBodyIsPartOfTheEncoded(t *testing.T) {
	r, err := resource.Marshal("backend", &clusterv3.Cluster{Name: "backend"})
	if err != nil {
		t.Fatal(err)
	}
	encoded := r.Encoded().ReadOnlyData()
	if &encoded[len(encoded)-1] != &r.Body.Value[len(r.Body.Value)-1] {
		t.Error("the value is a copy")
	}
}

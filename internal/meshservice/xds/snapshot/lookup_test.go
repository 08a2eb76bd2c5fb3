package snapshot

import (
	"slices"
	"testing"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// What a proxy had before its mesh changed is found by the names of its clusters, to the byte, as long as the destinations exist.
func TestLookup(t *testing.T) {
	for _, environment := range []string{"kubernetes", "universal"} {
		t.Run(environment, func(t *testing.T) {
			s, objects := readWorld(t, "testdata/"+environment+"-everywhere.in.yaml")
			id := s.Proxies[0]
			before := s.engine(objects).Config(id)
			for i, obj := range objects {
				if mesh, is := obj.(*kumav1alpha1.Mesh); is {
					mesh = mesh.DeepCopy()
					mesh.Spec.MeshServices = nil
					objects[i] = mesh
				}
			}
			e := s.engine(objects)
			var names []string
			for _, r := range before.Of(resource.Cluster) {
				names = append(names, r.Name)
			}
			if now := e.Config(id).Of(resource.Cluster); len(now) >= len(names) {
				t.Fatalf("the proxy has lost none of %q", names)
			}
			found := e.Lookup(id, append(names, "nobody", "nobody_shop_east_default_msvc_80"))
			for _, kind := range resource.Types() {
				if !slices.EqualFunc(before.Of(kind), found.Of(kind), func(a, b *resource.Resource) bool { return a.Name == b.Name && a.Version == b.Version }) {
					t.Errorf("%s: found %d resources, and the proxy had %d", kind.URL(), len(found.Of(kind)), len(before.Of(kind)))
				}
			}
			other := id
			other.Name = "nobody"
			if e.Lookup(other, names) != nil {
				t.Error("resources are found for a proxy that does not exist")
			}
		})
	}
}

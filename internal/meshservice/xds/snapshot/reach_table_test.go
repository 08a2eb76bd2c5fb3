package snapshot

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Every row of the table of what is reached, in every mode and environment: what a consumer listens at, and where that leads.
func TestReachTable(t *testing.T) {
	for _, environment := range []string{desired.Kubernetes, desired.Universal} {
		t.Run(environment, func(t *testing.T) {
			s, objects := readWorld(t, "testdata/reach/"+environment+".in.yaml")
			table := map[model.Mode]map[string][]string{}
			for _, mode := range []model.Mode{model.Disabled, model.ReachableBackendRefs, model.Everywhere, model.Exclusive} {
				table[mode] = map[string][]string{}
				e := s.engine(inMode(objects, kumav1alpha1.Mode(mode)))
				for _, p := range e.Proxies("default") {
					if !strings.HasSuffix(p.ID.Name, "-1") { // those are called
						table[mode][p.ID.Name] = outboundsIn(t, e.Config(p.ID))
					}
				}
			}
			got, err := yaml.Marshal(table)
			if err != nil {
				t.Fatal(err)
			}
			file := "testdata/reach/" + environment + ".out.yaml"
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
				t.Errorf("not as expected (%v); look at it and run go test -update: %s", err, diff)
			}
		})
	}
}

// inMode are the same objects in a mesh of another mode, which is in force.
func inMode(objects []client.Object, mode kumav1alpha1.Mode) []client.Object {
	all := slices.Clone(objects)
	for i, obj := range all {
		if mesh, is := obj.(*kumav1alpha1.Mesh); is {
			mesh = mesh.DeepCopy()
			mesh.Spec.MeshServices, mesh.Status.Mode = &kumav1alpha1.MeshServices{Mode: mode}, mode
			all[i] = mesh
		}
	}
	return all
}

// outboundsIn are the addresses of a config and where each leads, and the clusters that no address leads to.
func outboundsIn(t *testing.T, c *resource.Config) []string {
	t.Helper()
	list := []string{}
	listeners := shown(t, c)["listeners"].([]any)
	for _, l := range listeners {
		l := l.(map[string]any)
		chains, outbound := l["filter_chains"].([]any)
		if !outbound {
			continue
		}
		filter := chains[0].(map[string]any)["filters"].([]any)[0].(map[string]any)["typed_config"].(map[string]any)
		list = append(list, l["name"].(string)+" -> "+filter["stat_prefix"].(string))
	}
	for _, cluster := range c.Of(resource.Cluster) {
		if !slices.ContainsFunc(list, func(l string) bool { return strings.HasSuffix(l, " -> "+cluster.Name) }) {
			list = append(list, "no address -> "+cluster.Name)
		}
	}
	return list
}

package snapshot

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

var update = flag.Bool("update", false, "rewrite what is expected in testdata")

// setting is the first document of an input: what the engine is told besides objects.
type setting struct {
	Zone        string            `json:"zone"`
	Environment string            `json:"environment"`
	Tags        map[string]string `json:"tags"`
	Switched    []string          `json:"switched"`
	// Proxies are those whose config is expected.
	Proxies []model.ProxyID `json:"proxies"`
	// Show is what of it; without it, all.
	Show []string `json:"show"`
}

func readWorld(t testing.TB, file string) (setting, []client.Object) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(raw, []byte("\n---\n"))
	s := setting{Zone: "east", Environment: "kubernetes"}
	if err := yaml.UnmarshalStrict(documents[0], &s); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kumav1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []client.Object
	for _, document := range documents[1:] {
		obj, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, document)
		}
		objects = append(objects, obj.(client.Object))
	}
	return s, objects
}

func (s setting) engine(objects []client.Object) *Engine {
	e := New(desired.ZoneInfo{Zone: s.Zone, Environment: s.Environment, SystemNamespace: "kuma-system"})
	for _, obj := range objects {
		e.Put(obj)
	}
	e.SetVIPs("default", s.Tags)
	switched := map[string]bool{}
	for _, consumer := range s.Switched {
		switched[consumer] = true
	}
	e.SetSwitched("default", switched)
	e.Flush()
	return e
}

// shown is a config as people read it.
func shown(t testing.TB, c *resource.Config) map[string]any {
	t.Helper()
	all := map[string]any{}
	if c == nil {
		return all
	}
	for kind, name := range map[resource.Type]string{
		resource.Cluster: "clusters", resource.Endpoint: "endpoints", resource.Listener: "listeners", resource.Route: "routes",
	} {
		list := []any{}
		for _, r := range c.Of(kind) {
			message, err := r.Body.UnmarshalNew()
			if err != nil {
				t.Fatal(err)
			}
			text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(text, &value); err != nil {
				t.Fatal(err)
			}
			list = append(list, value)
		}
		all[name] = list
	}
	return all
}

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".in.yaml"), func(t *testing.T) {
			s, objects := readWorld(t, file)
			e := s.engine(objects)
			configs := map[string]any{}
			for _, id := range s.Proxies {
				all := shown(t, e.Config(id))
				if len(s.Show) > 0 {
					maps.DeleteFunc(all, func(name string, _ any) bool { return !slices.Contains(s.Show, name) })
				}
				configs[id.String()] = all
			}
			if problems := e.Problems("default"); len(problems) > 0 {
				configs["problems"] = problems
			}
			got, err := yaml.Marshal(configs)
			if err != nil {
				t.Fatal(err)
			}
			expected := strings.Replace(file, ".in.", ".out.", 1)
			if *update {
				if err := os.WriteFile(expected, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(expected)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("not as expected; look at it and run go test -update: %s", diff)
			}
		})
	}
}

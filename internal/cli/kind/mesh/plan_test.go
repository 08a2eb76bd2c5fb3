package mesh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/forecast"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/operator"
)

func code(err error) int { return console.ExitCode(err, true) }

// meshObjects reads all objects of a file.
func meshObjects(t *testing.T, name string) []client.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "world-"+name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := operator.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, add := range []func() error{
		func() error { return corev1.AddToScheme(scheme) }, func() error { return kumav1alpha1.AddToScheme(scheme) },
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []client.Object
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		object, _, err := decoder.Decode([]byte(part), nil, nil)
		if err != nil {
			t.Fatalf("%v: %s", err, part)
		}
		objects = append(objects, object.(client.Object))
	}
	return objects
}

// meshWorld is that of a file, in a mode.
func meshWorld(t *testing.T, name string, mode model.Mode) *forecast.MeshState {
	t.Helper()
	objects := meshObjects(t, name)
	if name == "kubernetes" && mode != model.Disabled {
		objects = append(objects, meshObjects(t, name+"-generated")...)
	}
	mesh, tags := &kumav1alpha1.Mesh{}, &corev1.ConfigMap{}
	for _, o := range objects {
		switch o := o.(type) {
		case *kumav1alpha1.Mesh:
			mesh = o
		case *corev1.ConfigMap:
			tags = o
		}
	}
	mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: kumav1alpha1.Mode(mode)}
	world := forecast.NewMeshState(mesh, tags, desired.ZoneInfo{})
	for _, o := range objects {
		world.Add(o)
	}
	return world
}

func TestPlanOfMesh(t *testing.T) {
	const kubernetes, universal = "kubernetes", "universal"
	cases := map[string]struct {
		world string
		from  model.Mode
		q     forecast.Scenario
		code  int
	}{
		"disabled":             {kubernetes, model.Disabled, forecast.Scenario{Mode: model.Disabled}, console.ExitOK},
		"everywhere":           {kubernetes, model.Disabled, forecast.Scenario{Mode: model.Everywhere}, console.ExitUnfinished},
		"reachable":            {kubernetes, model.Disabled, forecast.Scenario{Mode: model.ReachableBackendRefs}, console.ExitUnfinished},
		"reachable one":        {kubernetes, model.Disabled, forecast.Scenario{Mode: model.ReachableBackendRefs, Consumers: []string{"shop/Deployment/cart"}}, console.ExitUnfinished},
		"reachable switched":   {kubernetes, model.ReachableBackendRefs, forecast.Scenario{Mode: model.ReachableBackendRefs, AllConsumers: true}, console.ExitUnfinished},
		"exclusive":            {kubernetes, model.Disabled, forecast.Scenario{Mode: model.Exclusive}, console.ExitUnfinished},
		"back":                 {kubernetes, model.Everywhere, forecast.Scenario{Mode: model.Disabled}, console.ExitUnfinished},
		"everywhere already":   {kubernetes, model.Everywhere, forecast.Scenario{Mode: model.Everywhere}, console.ExitOK},
		"universal everywhere": {universal, model.Disabled, forecast.Scenario{Mode: model.Everywhere}, console.ExitUnfinished},
		"universal exclusive":  {universal, model.Disabled, forecast.Scenario{Mode: model.Exclusive}, console.ExitUnfinished},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := forecast.Compare(meshWorld(t, c.world, c.from), c.q)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			printForecast(&out, render.Text, f)
			meshGolden(t, "plan "+name, out.Bytes())
			if got := code(newPlan(f).ExitError()); got != c.code {
				t.Errorf("exit code %d", got)
			}
		})
	}
}

func TestPlanOfMeshForPrograms(t *testing.T) {
	f, err := forecast.Compare(meshWorld(t, "kubernetes", model.Disabled), forecast.Scenario{Mode: model.Everywhere})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	report := newPlan(f)
	if err := render.JSON.Print(&out, report, nil); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "null") {
		t.Errorf("a list is null: %s", out.String())
	}
	var read struct {
		Target string            `json:"target"`
		Mesh   forecast.Forecast `json:"mesh"`
	}
	if err := json.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if read.Target != "Everywhere" || len(read.Mesh.Groups) == 0 || len(read.Mesh.Made) != 2 {
		t.Errorf("%+v", read)
	}
}

func TestPoliciesOfDataplane(t *testing.T) {
	for _, mode := range []model.Mode{model.Disabled, model.Everywhere} {
		world := meshWorld(t, "kubernetes", mode)
		dataplane := &kumav1alpha1.Dataplane{}
		dataplane.Name, dataplane.Namespace = "cart-1", "shop"
		var out bytes.Buffer
		printPolicies(&out, render.Text, world.Explain(dataplane))
		meshGolden(t, "policies "+strings.ToLower(string(mode)), out.Bytes())
	}
}

func TestManyChanges(t *testing.T) {
	var g forecast.Group
	for i := range render.MaxRows + 5 {
		g.Consumers = append(g.Consumers, forecast.Consumer{Name: fmt.Sprintf("shop/Deployment/c%d", i), Proxies: 1})
		side := &forecast.Side{Zones: []string{fmt.Sprintf("zone-%d", i)}}
		g.Changes = append(g.Changes, forecast.Change{Kind: forecast.Cluster, Action: forecast.Appears, Name: fmt.Sprintf("cluster-%d", i), To: side})
	}
	for format, all := range map[render.Format]bool{render.Text: false, render.Wide: true} {
		var out bytes.Buffer
		printGroup(&out, format, g)
		if strings.Contains(out.String(), "and 5 more") == all || strings.Contains(out.String(), "cluster-24") != all || strings.Contains(out.String(), "/c24 ") != all {
			t.Errorf("-o %s: %s", format, out.String())
		}
	}
}

func TestPoliciesOfDataplaneThatReachesNothing(t *testing.T) {
	world := meshWorld(t, "kubernetes", model.Everywhere)
	dataplane := &kumav1alpha1.Dataplane{}
	dataplane.Name, dataplane.Namespace = "lost-1", "shop"
	dataplane.Annotations = map[string]string{kumav1alpha1.AnnotationConsumer: "Deployment/lost"}
	dataplane.Spec.Networking.TransparentProxying = &kumav1alpha1.TransparentProxying{
		ReachableServices: []string{"none"},
		ReachableBackendRefs: &kumav1alpha1.BackendRefs{Items: []kumav1alpha1.ReachableBackendRef{
			{Kind: kumav1alpha1.MeshServiceKind, Name: "ledger"}, {Kind: kumav1alpha1.MeshServiceKind, Name: "ledgr"},
		}},
	}
	world.Add(dataplane)
	var out bytes.Buffer
	printPolicies(&out, render.Text, world.Explain(dataplane))
	meshGolden(t, "policies lost", out.Bytes())
}

package controllers_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli"
	"github.com/fairlead/fairlead/internal/meshservice/forecast"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// shop is the mesh that the outputs of the commands are tested with.
const shop = "../../../../internal/cli/kind/mesh/testdata/world-kubernetes.yaml"

// readOnly lets nothing through that could write.
type readOnly struct{ next http.RoundTripper }

func (r readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return nil, fmt.Errorf("%s %s is more than reading", request.Method, request.URL.Path)
	}
	return r.next.RoundTrip(request)
}

// TestPlanChangesNothing: no operator runs here, so that whatever changes is the doing of the plan.
func TestPlanChangesNothing(t *testing.T) {
	c := shared(t)
	scheme, err := scheme()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(c.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	create(t, admin, scheme)
	before := versions(t, admin)

	t.Run("load", func(t *testing.T) {
		config := c.Config()
		config.Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} }))
		reader, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		world, err := forecast.Load(t.Context(), reader, "default", desired.ZoneInfo{})
		if err != nil {
			t.Fatal(err)
		}
		if want := (desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}); world.Where != want {
			t.Errorf("it is %+v", world.Where)
		}
		f, err := forecast.Compare(world, forecast.Scenario{Mode: model.Everywhere})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.Made, []string{"shop/backend", "shop/ledger"}) || f.Consumers != 4 || len(f.Groups) != 1 || f.Groups[0].Moved() == 0 {
			t.Errorf("%+v", f)
		}
	})
	for name, c := range map[string]struct {
		args string
		code int
		want string
	}{
		"plan":                     {"plan mesh default --mode Everywhere", 3, "shop/Deployment/backend (1 proxy), shop/Deployment/cart (2 proxies)"},
		"plan for programs":        {"plan mesh default --mode Exclusive -o json", 3, `"target": "Exclusive"`},
		"plan of a consumer":       {"plan mesh default --mode ReachableBackends --consumer shop/Deployment/cart", 3, "with 1 more consumer switched over"},
		"plan of nothing":          {"plan mesh default", 0, "changes for any of 4 consumers."},
		"plan seen from elsewhere": {"plan mesh default --mode Everywhere --mesh-zone north", 3, "seen from zone north"},
		"plan of no mesh":          {"plan mesh moon --mode Everywhere", 1, "mesh.kuma.io/moon does not exist"},
		"plan of no mode":          {"plan mesh default --mode Sometimes", 2, "--mode Sometimes is none of"},
		"plan of nobody":           {"plan mesh default --consumer shop/Deployment/none", 2, "no Dataplane of Mesh default is part of shop/Deployment/none; give --consumer some of"},
		"a manifest":               {"plan mesh default -f mesh.yaml", 2, "a Mesh is planned with --mode"},
		"policies":                 {"status dataplane cart-1 -n shop --policies", 0, "MeshHTTPRoute shop/canary"},
		"policies for programs":    {"status dataplane/cart-1 -n shop --policies -o json", 0, `"applies": true`},
		"policies of nothing":      {"status dataplane moon -n shop --policies", 1, "dataplane.kuma.io/moon does not exist in namespace shop"},
		"policies of a mesh":       {"status mesh default --policies", 2, "--policies is about a Dataplane"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			got := cli.Main(cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, append(strings.Fields(c.args), "--kubeconfig", cluster.Shared(t).Kubeconfig()))
			if got != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit code %d: %s", got, out.String())
			}
		})
	}
	if diff := cmp.Diff(before, versions(t, admin)); diff != "" {
		t.Errorf("something was written: %s", diff)
	}
}

// create makes all that is in the file. Addresses of Services are given by the cluster.
func create(t *testing.T, admin client.Client, scheme *runtime.Scheme) {
	t.Helper()
	text, err := os.ReadFile(shop)
	if err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kuma-system"}}}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		object, _, err := decoder.Decode([]byte(part), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object.(client.Object))
	}
	for _, o := range objects {
		o.SetUID("")
		if s, ok := o.(*corev1.Service); ok {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		}
		// A namespace of this name may still be ending, which an earlier run of the test has deleted.
		wait.Until(t, func(ctx context.Context) error { return admin.Create(ctx, o) })
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(admin.Delete(context.Background(), o)); err != nil {
				t.Error(err)
			}
		})
	}
}

// versions are those of all objects that a plan looks at, or would make, and that no controller of Kubernetes makes.
func versions(t *testing.T, reader client.Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, list := range []client.ObjectList{
		&kumav1alpha1.MeshList{}, &kumav1alpha1.DataplaneList{}, &kumav1alpha1.ZoneIngressList{}, &kumav1alpha1.HostnameGeneratorList{},
		&kumav1alpha1.MeshServiceList{}, &kumav1alpha1.MeshMultiZoneServiceList{},
		&kumav1alpha1.MeshTimeoutList{}, &kumav1alpha1.MeshRetryList{}, &kumav1alpha1.MeshCircuitBreakerList{},
		&kumav1alpha1.MeshLoadBalancingStrategyList{}, &kumav1alpha1.MeshHTTPRouteList{}, &kumav1alpha1.MeshTCPRouteList{},
		&corev1.ServiceList{}, &corev1.ConfigMapList{},
	} {
		if err := reader.List(t.Context(), list, client.InNamespace("")); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			o, ok := item.(client.Object)
			ours := ok && slices.Contains([]string{"", "shop", "kuma-system"}, o.GetNamespace())
			if ours && o.GetName() != "kube-root-ca.crt" {
				all[fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())] = o.GetResourceVersion()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 10 {
		t.Fatalf("there is too little to look at: %v", all)
	}
	return all
}

package meshservice_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// somewhere is an address at which nothing answers, for tests that do not call.
const somewhere = "127.7.0.1:9"

// shop is a backend in both zones, and two consumers of it. All have proxies that are connected, since an operator that has
// just started waits for those that are not.
type shop struct {
	*stage
	backend, cart, checkout *proxy
}

func newShop(t testing.TB, mode kumav1alpha1.Mode) *shop {
	t.Helper()
	s := &shop{stage: newStage(t, mode)}
	s.create(t, service("backend"), s.ingress(t, somewhere, "backend"))
	s.backend = s.connect(t, s.runs(t, deployment("backend", 8080)))
	s.cart = s.connect(t, s.runs(t, deployment("cart", 0)))
	s.checkout = s.connect(t, s.runs(t, deployment("checkout", 0)))
	return s
}

// meshService is one that somebody made by hand.
func meshService(name string, tags map[string]string) *kumav1alpha1.MeshService {
	return &kumav1alpha1.MeshService{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kumav1alpha1.MeshServiceSpec{
			Selector: kumav1alpha1.MeshServiceSelector{DataplaneTags: tags},
			Ports:    []kumav1alpha1.Port{{Port: 80, TargetPort: intstr.FromInt32(8080), AppProtocol: "grpc"}},
		},
	}
}

// zones are those that the endpoints of a cluster are in, as the proxy sees them.
func (p *proxy) zones(cluster string) map[string]int {
	var load endpointv3.ClusterLoadAssignment
	zones := map[string]int{}
	if p.decode(resource.Endpoint, cluster, &load) {
		for _, locality := range load.Endpoints {
			zones[locality.GetLocality().GetZone()] += len(locality.LbEndpoints)
		}
	}
	return zones
}

func (p *proxy) answeredFrom(t testing.TB, cluster string, want map[string]int) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		if got := p.zones(cluster); !maps.Equal(got, want) {
			return fmt.Errorf("%s has %s in %v, want %v", p.id, cluster, got, want)
		}
		return nil
	})
}

// calledAt waits until the proxy calls a service by its tag at all names and addresses that it has, which come one by one, and has what
// these lead to.
func (s *stage) calledAt(t testing.TB, p *proxy, service string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var record corev1.ConfigMap
		if err := s.Get(ctx, client.ObjectKey{Namespace: system, Name: desired.VIPConfigMap(s.mesh)}, &record); err != nil {
			return err
		}
		has := p.names(resource.Listener)
		for _, name := range []string{
			s.target(service), build.HostAddress(service+"."+s.namespace+".svc.cluster.local", 80).Name,
			build.IPAddress(record.Data[s.tag(service)], 80).Name, build.IPAddress(s.clusterIP(t, service), 80).Name,
		} {
			if !slices.Contains(has, name) {
				return fmt.Errorf("%s has no listener %s among %q", p.id, name, has)
			}
		}
		return p.hasAll()
	})
}

// TestUpgradeChangesNothing: a Mesh that says nothing of MeshServices has none generated, and those that somebody made by
// hand reach no proxy.
func TestUpgradeChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	tag := s.tag("backend")
	s.cart.reaches(t, []string{tag}, nil)
	s.cart.answeredFrom(t, tag, map[string]int{east: 1, west: 1})
	s.calledAt(t, s.cart, "backend")
	before := s.cart.config()

	byHand := meshService("by-hand", map[string]string{kumav1alpha1.TagService: tag})
	s.create(t, byHand)
	s.until(t, byHand, func() error {
		if byHand.Status.ObservedGeneration == 0 {
			return errors.New("the operator has not seen the MeshService made by hand")
		}
		return nil
	})
	// What comes after it reaches the proxy.
	s.create(t, service("later"))
	s.runs(t, deployment("later", 8080))
	s.cart.reaches(t, []string{s.tag("later")}, nil)

	after := s.cart.config()
	maps.DeleteFunc(after, func(name, body string) bool {
		return strings.Contains(name+body, s.tag("later")) || strings.Contains(name, "later."+s.namespace)
	})
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the configuration has changed:\n%s", diff)
	}
	var made kumav1alpha1.MeshServiceList
	if err := s.List(t.Context(), &made, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(made.Items) != 1 {
		t.Errorf("there are %d MeshServices, want the one made by hand", len(made.Items))
	}
}

func (s *stage) clusterIP(t testing.TB, name string) string {
	t.Helper()
	svc := service(name)
	if err := s.read(t.Context(), svc); err != nil {
		t.Fatal(err)
	}
	return svc.Spec.ClusterIP
}

// TestStoryModes takes a mesh all the way, and back.
func TestStoryModes(t *testing.T) {
	t.Parallel()
	s := newShop(t, kumav1alpha1.ModeDisabled)
	tag, cluster := s.tag("backend"), s.cluster("backend")
	mine := meshService("mine", map[string]string{"app": "nothing"})
	s.create(t, mine)
	joining := service("joining")
	joining.Namespace = s.Namespace(t)
	if err := s.Create(t.Context(), joining); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*proxy{s.cart, s.checkout} {
		p.reaches(t, []string{tag}, []string{cluster})
	}
	s.cart.answeredFrom(t, tag, map[string]int{east: 1, west: 1})
	s.calledAt(t, s.cart, "backend")
	before := s.cart.config()

	// One consumer, by its own annotation.
	s.setMode(t, kumav1alpha1.ModeReachableBackendRefs)
	generated := meshService("backend", nil)
	s.until(t, generated, func() error {
		if vips := generated.Status.VIPs; len(vips) != 1 || vips[0].IP != s.clusterIP(t, "backend") {
			return fmt.Errorf("it has %+v, and not the address of its Service", vips)
		}
		return nil
	})
	for label, want := range map[string]string{
		kumav1alpha1.LabelDisplayName: "backend", kumav1alpha1.LabelNamespace: s.namespace, kumav1alpha1.LabelKubernetesNamespace: s.namespace,
		kumav1alpha1.LabelZone: east, kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy, kumav1alpha1.LabelMesh: s.mesh,
	} {
		if got := generated.Labels[label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	s.annotate(t, s.cart.id, kumav1alpha1.AnnotationReachableBackends, "kind: MeshService\nlabels: {}\n")
	s.cart.reaches(t, []string{tag, cluster}, nil)
	s.cart.answeredFrom(t, cluster, map[string]int{east: 1})
	s.checkout.reaches(t, []string{tag}, []string{cluster})

	s.setMode(t, kumav1alpha1.ModeEverywhere)
	s.checkout.reaches(t, []string{tag, cluster}, nil)
	s.checkout.answeredFrom(t, cluster, map[string]int{east: 1})

	// A namespace joins the mesh: the Service that it has had before gets a MeshService.
	s.join(t, joining.Namespace)
	wait.Until(t, func(ctx context.Context) error {
		return s.Get(ctx, client.ObjectKeyFromObject(joining), &kumav1alpha1.MeshService{})
	})
	if err := s.Delete(t.Context(), joining); err != nil {
		t.Fatal(err)
	}

	// A Service with the name of a hand-made MeshService: the MeshService is not overwritten, the Mesh reports it and goes on without.
	named := service("mine")
	s.create(t, named)
	mesh := s.meshObject()
	s.until(t, mesh, func() error {
		return harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionGenerated, metav1.ConditionTrue, kumav1alpha1.ReasonUnmanaged, s.namespace+"/mine")
	})
	if err := s.read(t.Context(), mine); err != nil || mine.Generation != 1 || mine.Labels[kumav1alpha1.LabelManagedBy] != "" {
		t.Errorf("the one made by hand: %v, it became %+v", err, mine)
	}

	s.setMode(t, kumav1alpha1.ModeExclusive)
	for _, p := range []*proxy{s.cart, s.checkout} {
		p.reaches(t, []string{cluster}, []string{tag})
	}
	if err := s.Delete(t.Context(), named); err != nil {
		t.Fatal(err)
	}

	// Back: what was generated goes, and only that.
	s.setMode(t, kumav1alpha1.ModeDisabled)
	for _, p := range []*proxy{s.cart, s.checkout} {
		p.reaches(t, []string{tag}, []string{cluster})
	}
	s.gone(t, generated)
	if err := s.read(t.Context(), mine); err != nil {
		t.Errorf("the one made by hand: %v", err)
	}
	wait.Until(t, func(context.Context) error {
		if diff := cmp.Diff(before, s.cart.config()); diff != "" {
			return fmt.Errorf("it is not as it was before:\n%s", diff)
		}
		return nil
	})
}

// TestExclusiveHolds: a consumer that lists tags only would reach nothing in mode Exclusive. The mode waits for it, and says so.
func TestExclusiveHolds(t *testing.T) {
	t.Parallel()
	s := newShop(t, kumav1alpha1.ModeEverywhere)
	tag, cluster := s.tag("backend"), s.cluster("backend")
	s.annotate(t, s.cart.id, kumav1alpha1.AnnotationReachableServices, tag)
	s.cart.reaches(t, []string{tag}, []string{cluster})
	s.checkout.reaches(t, []string{tag, cluster}, nil)

	mesh := s.meshObject()
	s.change(t, mesh, func() { mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: kumav1alpha1.ModeExclusive} })
	s.until(t, mesh, func() error {
		return harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionGenerated, metav1.ConditionFalse, kumav1alpha1.ReasonConsumersStranded,
			s.consumer("cart"), "mode Everywhere is in force")
	})
	s.enter(t, unfinished, "plan", []string{"--mode", "Exclusive"}, s.consumer("cart")+" - (new) the consumer would reach nothing")
	s.cart.reaches(t, []string{tag}, []string{cluster})
	s.checkout.reaches(t, []string{tag, cluster}, nil)

	s.annotate(t, s.cart.id, kumav1alpha1.AnnotationReachableBackends, "kind: MeshService\nlabels: {}\n")
	for _, p := range []*proxy{s.cart, s.checkout} {
		p.reaches(t, []string{cluster}, []string{tag})
	}
	s.until(t, mesh, func() error {
		return harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionGenerated, metav1.ConditionTrue, kumav1alpha1.ReasonGenerated)
	})
}

func (s *stage) annotate(t testing.TB, id model.ProxyID, name, value string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: id.Name}}
	s.change(t, pod, func() {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[name] = value
	})
}

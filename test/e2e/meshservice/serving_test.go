package meshservice_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// servingProcess is one that serves proxies and does nothing else.
type servingProcess struct {
	*harness.Operator
	address string
}

// serve starts one, as the ServiceAccount that the chart gives it.
func (w *world) serve(t testing.TB, kubeconfig string) servingProcess {
	t.Helper()
	process, err := harness.StartFairlead(harness.Environment(t.TempDir()), "serve-mesh", "--kubeconfig", kubeconfig, "--log-format=text",
		"--mesh-zone", east, "--mesh-bind-address", "127.0.0.1:0", "--mesh-insecure")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	process.KeepLogOnFailure(t)
	p := servingProcess{Operator: process}
	wait.Until(t, func(context.Context) error {
		found := serving.FindStringSubmatch(process.Log.Since(0))
		if found == nil {
			return errors.Join(process.Alive(), errors.New("the process serves no proxies"))
		}
		p.address = found[1]
		return process.Ready()
	})
	return p
}

// replica is the name of the process in its reports.
func (p servingProcess) replica(t testing.TB) string {
	t.Helper()
	found := replicaName.FindStringSubmatch(p.Log.Since(0))
	if found == nil {
		t.Fatal("the process does not say what it is called")
	}
	return found[1]
}

var replicaName = regexp.MustCompile(`\breplica="?([a-z0-9-]+)`)

// connectTo starts a proxy that is connected to one process.
func (s *stage) connectTo(t testing.TB, process servingProcess, id model.ProxyID) *proxy {
	t.Helper()
	p := &proxy{id: id}
	p.dialAt(t, process.address, anyError, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return p
}

// envoyAt is an Envoy that is connected to a process, and connects to the others when that ends, as through a Service.
func (s *stage) envoyAt(t testing.TB, id model.ProxyID, process servingProcess, others ...servingProcess) *callers.Envoy {
	t.Helper()
	addresses := manual.NewBuilderWithScheme("processes")
	all := []resolver.Address{{Addr: process.address}}
	addresses.InitialState(resolver.State{Addresses: all})
	connection, err := grpc.NewClient("processes:///mesh", grpc.WithResolvers(addresses), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	envoy := callers.StartEnvoy(connection, id.String(), func([]resource.Type) {})
	t.Cleanup(func() { envoy.Stop() })
	wait.Until(t, func(context.Context) error {
		if envoy.Streams() == 0 {
			return fmt.Errorf("proxy %s is not answered at %s", id, process.address)
		}
		return nil
	})
	// gRPC tries the next address as well when the first one takes a moment, so the others come only now.
	for _, other := range others {
		all = append(all, resolver.Address{Addr: other.address})
	}
	addresses.UpdateState(resolver.State{Addresses: all})
	return envoy
}

// ledTo waits until a listener leads to a cluster, and to nothing else.
func ledTo(t testing.TB, envoy *callers.Envoy, listener, cluster string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		if to, _ := envoy.Leads(listener); !slices.Equal(to, []string{cluster}) {
			return fmt.Errorf("listener %s leads to %q, want %s", listener, to, cluster)
		}
		return nil
	})
}

// TestServingProcesses: two processes serve the proxies, and the operator none. It switches consumers whose proxies are connected
// to either. One process is killed while a batch is open: its proxies reconnect to the other one and have the same
// configuration, and the switch goes on.
func TestServingProcesses(t *testing.T) {
	w := theWorld(t)
	kubeconfig, err := harness.InstallServingPermissions(t.Context(), w.Cluster, w, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.again(t, "--mesh-bind-address", "", "--mesh-serving-reports")
	s := newStage(t, kumav1alpha1.ModeReachableBackendRefs)
	mesh := s.meshObject()
	served := func(status metav1.ConditionStatus, reason string, fragments ...string) {
		t.Helper()
		s.until(t, mesh, func() error {
			return harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionServed, status, reason, fragments...)
		})
	}
	served(metav1.ConditionFalse, kumav1alpha1.ReasonNotServed, "fairlead serve-mesh")
	one, two := w.serve(t, kubeconfig), w.serve(t, kubeconfig)
	served(metav1.ConditionTrue, kumav1alpha1.ReasonServed, "by 2 processes")

	tag, cluster := s.tag("backend"), s.cluster("backend")
	s.create(t, service("backend"))
	backend := s.connectTo(t, two, s.runs(t, deployment("backend", 8080)))
	cartID := s.runs(t, deployment("cart", 0))
	cart := s.envoyAt(t, cartID, one, two)
	checkout := s.connectTo(t, two, s.runs(t, deployment("checkout", 0)))
	listener := "outbound:" + s.clusterIP(t, "backend") + ":80"
	ledTo(t, cart, listener, tag)
	backend.reaches(t, []string{tag}, []string{cluster})
	checkout.reaches(t, []string{tag}, []string{cluster})
	generated := meshService("backend", nil)
	s.until(t, generated, func() error {
		if n := generated.Status.DataplaneProxies.Connected; n != 1 {
			return fmt.Errorf("MeshService backend counts %d connected proxies", n)
		}
		return nil
	})

	checkout.hear(false)
	s.migrate(t, "--batch-size", "1")
	s.standing(t, map[string]kumav1alpha1.ConsumerState{
		"backend": kumav1alpha1.ConsumerSwitched, "cart": kumav1alpha1.ConsumerSwitched, "checkout": kumav1alpha1.ConsumerSwitching,
	})
	ledTo(t, cart, listener, cluster)
	// The other process has read that checkout is being switched, which was recorded after cart was.
	wait.Until(t, func(context.Context) error {
		if has := checkout.names(resource.Cluster); !slices.Contains(has, cluster) {
			return fmt.Errorf("%s has been given the clusters %q, and not %s", checkout.id, has, cluster)
		}
		return nil
	})
	before, streams := cart.Clusters(), cart.Streams()

	one.Kill()
	wait.Until(t, func(context.Context) error {
		if n := cart.Streams(); n <= streams {
			return fmt.Errorf("the proxy was answered on %d streams, as before", n)
		}
		return nil
	})
	ledTo(t, cart, listener, cluster)
	if now := cart.Clusters(); !slices.Equal(now, before) {
		t.Errorf("the proxy has clusters %q, and had %q", now, before)
	}
	checkout.hear(true)
	s.standing(t, all(kumav1alpha1.ConsumerSwitched, "backend", "cart", "checkout"))
	s.concludes(t, metav1.ConditionTrue, kumav1alpha1.ReasonSwitched, "3 of 3")
	checkout.reaches(t, []string{tag, cluster}, nil)
	served(metav1.ConditionTrue, kumav1alpha1.ReasonServed, "by 1 process")

	// The other one is told to end, and leaves no report.
	three := w.serve(t, kubeconfig)
	if err := two.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-two.Ended()
	var reports fairleadv1alpha1.MeshServingReportList
	if err := w.List(t.Context(), &reports); err != nil {
		t.Fatal(err)
	}
	name := two.replica(t)
	left := slices.ContainsFunc(reports.Items, func(r fairleadv1alpha1.MeshServingReport) bool { return r.Replica == name })
	// It gives up after a few seconds, and says so.
	if left && !strings.Contains(two.Log.Since(0), "deleting a MeshServingReport failed") {
		t.Errorf("process %s has left reports", name)
	}
	last := s.envoyAt(t, cartID, three)
	ledTo(t, last, listener, cluster)
	for _, broken := range cart.Stop() {
		t.Error(broken)
	}
	w.again(t, "--mesh-insecure")
}

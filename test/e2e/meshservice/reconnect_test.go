package meshservice_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestReconnect: while no operator runs, the mesh is changed so that proxies are led to other clusters. The next operator has
// never seen the proxies that reconnect, and yet no listener leads to a cluster that is gone, and no call fails.
func TestReconnect(t *testing.T) {
	s := newStage(t, kumav1alpha1.ModeEverywhere)
	s.echoes(t)
	s.until(t, meshService("backend", nil), func() error { return nil })
	caller := s.calls(t, "cart", s.target("backend"))
	answeredBy(t, caller, east)
	address := s.servesAt(t)
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	envoy := callers.StartEnvoy(connection, s.runs(t, deployment("checkout", 0)).String(), func([]resource.Type) {})
	t.Cleanup(func() { envoy.Stop() })
	listener := "outbound:" + s.clusterIP(t, "backend") + ":80"
	ledTo := func(cluster string) {
		t.Helper()
		wait.Until(t, func(context.Context) error {
			if to, _ := envoy.Leads(listener); !slices.Equal(to, []string{cluster}) {
				return fmt.Errorf("listener %s leads to %q, want %s", listener, to, cluster)
			}
			return nil
		})
	}
	ledTo(s.cluster("backend"))

	s.Operator.Kill()
	mesh := s.meshObject()
	s.change(t, mesh, func() { mesh.Spec.MeshServices.Mode = kumav1alpha1.ModeReachableBackendRefs })
	if err := s.operate(t.Context(), "--mesh-insecure", "--mesh-bind-address", address); err != nil {
		t.Fatal(err)
	}
	s.Operator.KeepLogOnFailure(t)

	ledTo(s.tag("backend"))
	answeredBy(t, caller, east, west)
	wait.Until(t, func(context.Context) error {
		if has := envoy.Clusters(); slices.Contains(has, s.cluster("backend")) {
			return fmt.Errorf("the proxy still has clusters %q", has)
		}
		return nil
	})
	// A stream that a busy machine lets time out is one more.
	if envoy.Streams() < 2 {
		t.Errorf("the proxy was answered on %d streams", envoy.Streams())
	}
	for _, broken := range envoy.Stop() {
		t.Error(broken)
	}
	t.Log(envoy.History())
	if tally := caller.Stop(); tally.Failed > 0 {
		t.Errorf("%d calls: %s", tally.Total(), tally)
	}
}

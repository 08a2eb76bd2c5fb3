package meshservice

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

func TestServed(t *testing.T) {
	on := ServingOptions{BindAddress: "127.0.0.1:5678"}
	problem := snapshot.Problem{Object: "Dataplane shop/cart", Field: "spec.networking.address", Message: "is not an IP"}
	for name, c := range map[string]struct {
		serving  ServingOptions
		ready    bool
		mtls     string
		problems []snapshot.Problem
		status   metav1.ConditionStatus
		reason   string
		says     string
	}{
		"nowhere":       {status: metav1.ConditionFalse, reason: "NotServed", says: "--mesh-bind-address"},
		"not yet":       {serving: on, status: metav1.ConditionFalse, reason: "NotServed", says: "namespace kuma-system"},
		"served":        {serving: on, ready: true, status: metav1.ConditionTrue, reason: "Served", says: "127.0.0.1:5678"},
		"mTLS":          {serving: on, ready: true, mtls: "ca-1", problems: []snapshot.Problem{problem}, status: metav1.ConditionFalse, reason: "MTLSNotServed", says: `spec.mtls.enabledBackend is "ca-1"`},
		"mTLS, not yet": {serving: on, mtls: "ca-1", status: metav1.ConditionFalse, reason: "NotServed", says: "namespace kuma-system"},
		"in part":       {on, true, "", []snapshot.Problem{problem}, metav1.ConditionTrue, "Incomplete", "Dataplane shop/cart: spec.networking.address: is not an IP"},
		"many told":     {on, true, "", []snapshot.Problem{problem, problem, problem, problem, problem}, metav1.ConditionTrue, "Incomplete", "; and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := &kumav1alpha1.Mesh{}
			mesh.Generation = 3
			mesh.Spec.MTLS = &kumav1alpha1.MTLS{EnabledBackend: c.mtls}
			got := servedCondition(mesh, DefaultOptions().ZoneInfo, c.serving, c.ready, c.problems)
			if got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.says) || got.ObservedGeneration != 3 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

package meshservice

import (
	"context"
	"net"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

func TestServed(t *testing.T) {
	const at = "at 127.0.0.1:5678"
	on, others := ServingOptions{BindAddress: "127.0.0.1:0"}, ServingOptions{Reports: true}
	problem := snapshot.Problem{Object: "Dataplane shop/cart", Field: "spec.networking.address", Message: "is not an IP"}
	for name, c := range map[string]struct {
		serving  ServingOptions
		by       string
		ready    bool
		mtls     string
		problems []snapshot.Problem
		status   metav1.ConditionStatus
		reason   string
		says     string
	}{
		"nowhere":       {status: metav1.ConditionFalse, reason: "NotServed", says: "--mesh-bind-address"},
		"starting":      {serving: on, ready: true, status: metav1.ConditionFalse, reason: "NotServed", says: "is starting"},
		"not yet":       {serving: on, by: at, status: metav1.ConditionFalse, reason: "NotServed", says: "namespace kuma-system"},
		"by nobody":     {serving: others, ready: true, status: metav1.ConditionFalse, reason: "NotServed", says: "no process of `fairlead serve-mesh` has renewed its MeshServingReport"},
		"by others":     {serving: others, by: replicasText(2), ready: true, status: metav1.ConditionTrue, reason: "Served", says: "proxies are served by 2 processes of `fairlead serve-mesh`"},
		"served":        {serving: on, by: at, ready: true, status: metav1.ConditionTrue, reason: "Served", says: "proxies are served at 127.0.0.1:5678"},
		"mTLS":          {serving: on, by: at, ready: true, mtls: "ca-1", problems: []snapshot.Problem{problem}, status: metav1.ConditionFalse, reason: "MTLSNotServed", says: `spec.mtls.enabledBackend is "ca-1"`},
		"mTLS, not yet": {serving: on, by: at, mtls: "ca-1", status: metav1.ConditionFalse, reason: "NotServed", says: "namespace kuma-system"},
		"in part":       {on, at, true, "", []snapshot.Problem{problem}, metav1.ConditionTrue, "Incomplete", "Dataplane shop/cart: spec.networking.address: is not an IP"},
		"many told":     {on, at, true, "", []snapshot.Problem{problem, problem, problem, problem, problem}, metav1.ConditionTrue, "Incomplete", "; and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := &kumav1alpha1.Mesh{}
			mesh.Generation = 3
			mesh.Spec.MTLS = &kumav1alpha1.MTLS{EnabledBackend: c.mtls}
			got := servedCondition(mesh, DefaultOptions().ZoneInfo, c.serving, c.by, c.ready, c.problems)
			if got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.says) || got.ObservedGeneration != 3 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A status that cannot be written because the CRD has no status subresource is reported once, and a Mesh that is gone is not.
func TestNoStatusSubresource(t *testing.T) {
	for name, c := range map[string]struct {
		live, refused bool
		want          int
	}{
		"no status subresource":                {true, true, 1},
		"the status is written":                {true, false, 0},
		"the Mesh is gone, and the cache lags": {false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := kumav1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "1"}}
			cached := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(mesh).Build(), interceptor.Funcs{
				SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
					if c.refused {
						return apierrors.NewNotFound(schema.GroupResource{Group: "kuma.io", Resource: "meshes"}, "default")
					}
					return nil
				},
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return nil
				},
			})
			live := fake.NewClientBuilder().WithScheme(scheme)
			if c.live {
				live = live.WithObjects(mesh.DeepCopy())
			}
			recorder := events.NewFakeRecorder(5)
			r := &servedReconciler{
				client: cached, live: live.Build(), recorder: recorder, where: DefaultOptions().ZoneInfo,
				by: func() string { return "" }, ready: func(string) bool { return true }, problems: func(string) []snapshot.Problem { return nil },
			}
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "default"}}); err != nil {
					t.Fatal(err)
				}
			}
			if len(recorder.Events) != c.want {
				t.Fatalf("%d events", len(recorder.Events))
			}
			if c.want > 0 {
				if got := <-recorder.Events; !strings.HasPrefix(got, "Warning NoStatusSubresource CRD meshes.kuma.io has no status subresource") || !strings.Contains(got, "Served is False (NotServed)") {
					t.Error(got)
				}
			}
		})
	}
}

// The port may be given as 0, and no other part of the address is the listener's.
func TestListenAddress(t *testing.T) {
	for given, want := range map[string]string{"127.0.0.1:0": "127.0.0.1:5678", ":5678": ":5678", "localhost:0": "localhost:5678", "[::1]:0": "[::1]:5678"} {
		address := newListenAddress()
		if got := address.get(); got != "" {
			t.Errorf("%s: before the server listens, the address is %q", given, got)
		}
		address.set(given, &net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 5678})
		if got := address.get(); got != want {
			t.Errorf("%s: the address is %s, want %s", given, got, want)
		}
	}
}

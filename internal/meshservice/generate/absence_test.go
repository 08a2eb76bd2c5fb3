package generate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// What is generated for a Mesh is kept for a while after it is deleted.
func TestDeletedMeshes(t *testing.T) {
	epoch := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := newDeletedMeshes()
	expect := func(when, mesh string, second int, want time.Duration) {
		t.Helper()
		if got := d.remaining(mesh, 30*time.Second, epoch.Add(time.Duration(second)*time.Second)); got != want {
			t.Errorf("%s: kept for another %s, want %s", when, got, want)
		}
	}
	if d.knows("default") {
		t.Error("a Mesh is known that was never seen")
	}
	d.exists("default")
	expect("just deleted", "default", 0, 30*time.Second)
	expect("a little later", "default", 10, 20*time.Second)
	d.exists("default")
	expect("created again and deleted again", "default", 100, 30*time.Second)
	expect("deleted for long", "default", 130, 0)
	expect("and after that", "default", 131, 0)
	expect("never seen by this process", "other", 140, 30*time.Second)
	expect("that one, deleted for long", "other", 170, 0)
	if !d.knows("default") || !d.knows("other") {
		t.Error("the grace period of a deleted Mesh would start again")
	}
}

// A process that has never seen the Mesh, as after a change of the leader, keeps what is generated for the whole grace period.
func TestRestartKeepsGeneratedOfDeletedMesh(t *testing.T) {
	r, clock := serviceReconciler(t, nil)
	reconcileCart(t, r, 30*time.Second)
	*clock = clock.Add(29 * time.Second)
	reconcileCart(t, r, time.Second)
	if !hasCart(t, r) {
		t.Error("a MeshService is deleted before the grace period of its Mesh is over")
	}
	*clock = clock.Add(time.Second)
	reconcileCart(t, r, 0)
	if hasCart(t, r) {
		t.Error("a MeshService is kept for ever without its Mesh")
	}
	reconcileCart(t, r, 0)
}

// There is nothing to keep in a mesh that has nothing.
func TestMeshThatNeverWas(t *testing.T) {
	r, _ := serviceReconciler(t, nil)
	if _, found, err := r.modeOf(t.Context(), "other"); found || err != nil {
		t.Errorf("found %t, %v", found, err)
	}
}

// MeshServices are deleted once the status says Disabled: a Mesh that leaves Disabled before that is still in Exclusive, and must
// have them.
func TestMeshServicesStayUntilDisabledIsInForce(t *testing.T) {
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: kumav1alpha1.ModeDisabled}
	mesh.Status.Mode = kumav1alpha1.ModeExclusive
	r, _ := serviceReconciler(t, mesh)
	reconcileCart(t, r, 0)
	if !hasCart(t, r) {
		t.Fatal("a MeshService is deleted while the status says Exclusive")
	}
	now := mesh.DeepCopy()
	now.Status.Mode = kumav1alpha1.ModeDisabled
	if !modeObserved.Update(event.UpdateEvent{ObjectOld: mesh, ObjectNew: now}) {
		t.Error("no Service is reconciled when the status says Disabled")
	}
	r, _ = serviceReconciler(t, now)
	if reconcileCart(t, r, 0); hasCart(t, r) {
		t.Error("a MeshService stays in a Mesh that is Disabled")
	}
}

// serviceReconciler has Service shop/cart, its MeshService, and a Mesh unless that is nil.
func serviceReconciler(t *testing.T, mesh *kumav1alpha1.Mesh) (r *reconciler, clock *time.Time) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kumav1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	where := desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{kumav1alpha1.LabelSidecarInjection: "enabled"}}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "cart"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	cart := desired.MeshServicesOf(service, namespace, nil, nil, where)[0]
	desired.RecordLabels(cart)
	objects := []client.Object{namespace, service, cart}
	if mesh != nil {
		objects = append(objects, mesh)
	}
	inMesh := func(object client.Object) []string { return []string{desired.MeshOf(object)} }
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&kumav1alpha1.Dataplane{}, byMesh, inMesh).WithIndex(&kumav1alpha1.MeshService{}, byMesh, inMesh).
		WithIndex(&kumav1alpha1.MeshService{}, byOwner, func(object client.Object) []string {
			return []string{metav1.GetControllerOf(object).Name}
		}).Build()
	clock = new(time.Time)
	*clock = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &reconciler{
		Options: Options{ZoneInfo: where, MeshGrace: 30 * time.Second}, client: c, cache: c, live: c, records: c,
		now: func() time.Time { return *clock }, events: &kube.EventDedup[eventSubject]{}, deleted: newDeletedMeshes(),
	}, clock
}

// reconcileCart reconciles the Service, and compares after how long that is to be done again.
func reconcileCart(t *testing.T, r *reconciler, again time.Duration) {
	t.Helper()
	cart := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "cart"}}
	result, err := requeueWhileDeleted(r.reconcileService(t.Context(), cart))
	if err != nil || result.RequeueAfter != again {
		t.Errorf("reconciled again after %s, %v, want %s", result.RequeueAfter, err, again)
	}
}

func hasCart(t *testing.T, r *reconciler) bool {
	t.Helper()
	err := r.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "cart"}, &kumav1alpha1.MeshService{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func TestRequeueWhileDeleted(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		err  error
		want reconcile.Result
		is   error
	}{
		"nothing":            {nil, reconcile.Result{}, nil},
		"another error":      {broken, reconcile.Result{}, broken},
		"the Mesh is absent": {fmt.Errorf("service: %w", meshDeletedError{"default", time.Second}), reconcile.Result{RequeueAfter: time.Second}, nil},
	} {
		if got, err := requeueWhileDeleted(reconcile.Result{}, c.err); got != c.want || !errors.Is(err, c.is) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

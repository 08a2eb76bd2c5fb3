package generate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// What is generated for a Mesh is kept for a while after it is deleted, and at once forgotten for one that never existed.
func TestDeletedMeshes(t *testing.T) {
	epoch := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := newDeletedMeshes()
	expect := func(when, mesh string, second int, want time.Duration) {
		t.Helper()
		if got := d.remaining(mesh, 30*time.Second, epoch.Add(time.Duration(second)*time.Second)); got != want {
			t.Errorf("%s: kept for another %s, want %s", when, got, want)
		}
	}
	expect("never seen", "other", 0, 0)
	d.exists("default")
	expect("just deleted", "default", 0, 30*time.Second)
	expect("a little later", "default", 10, 20*time.Second)
	d.exists("default")
	expect("created again and deleted again", "default", 100, 30*time.Second)
	expect("deleted for long", "default", 130, 0)
	expect("and after that", "default", 131, 0)
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

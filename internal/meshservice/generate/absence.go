package generate

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// deletedMeshes are the Meshes that this process has seen, and since when those that are deleted are. What is generated for a
// Mesh is kept for a while: `kubectl replace --force` deletes a Mesh and creates it again, and consumers must not lose their
// MeshServices meanwhile.
type deletedMeshes struct {
	mu sync.Mutex
	// since is zero for a Mesh that exists.
	since map[string]time.Time
}

func newDeletedMeshes() *deletedMeshes {
	return &deletedMeshes{since: map[string]time.Time{}}
}

// exists notes that a Mesh exists.
func (d *deletedMeshes) exists(mesh string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since[mesh] = time.Time{}
}

// knows says whether this process has seen a Mesh, or already counts how long it is deleted.
func (d *deletedMeshes) knows(mesh string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.since[mesh]
	return known
}

// remaining is how long to keep what is generated for a Mesh that does not exist. A process that never saw the Mesh, as after a
// restart, counts from now.
func (d *deletedMeshes) remaining(mesh string, grace time.Duration, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since[mesh].IsZero() {
		d.since[mesh] = now
	}
	return max(d.since[mesh].Add(grace).Sub(now), 0)
}

// meshDeletedError says that a Mesh was deleted a moment ago, and may be created again.
type meshDeletedError struct {
	mesh string
	left time.Duration
}

func (e meshDeletedError) Error() string {
	return fmt.Sprintf("Mesh %s is deleted; what is generated for it is kept for another %s", e.mesh, e.left)
}

// requeueWhileDeleted turns a meshDeletedError into a later reconcile.
func requeueWhileDeleted(result reconcile.Result, err error) (reconcile.Result, error) {
	if deleted := (meshDeletedError{}); errors.As(err, &deleted) {
		return reconcile.Result{RequeueAfter: deleted.left}, nil
	}
	return result, err
}

package work

import (
	"cmp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

const (
	// maxRestores is how often drift is reverted within restoreWindow before an object is left alone for the rest of it.
	maxRestores   = 5
	restoreWindow = time.Minute
)

// driftLimiter remembers when the drift of objects was reverted lately.
type driftLimiter struct {
	mu       sync.Mutex
	restores map[types.UID][]time.Time
}

// recent are the times within restoreWindow at which the drift of a Work's object was reverted.
func (c *driftLimiter) recent(work types.UID, now time.Time) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.restores[work]), func(at time.Time) bool { return now.Sub(at) > restoreWindow })
}

func (c *driftLimiter) record(work types.UID, now time.Time) {
	recent := c.recent(work, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.restores == nil {
		c.restores = map[types.UID][]time.Time{}
	}
	c.restores[work] = append(recent, now)
}

func (c *driftLimiter) forget(work types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.restores, work)
}

// exceedsLimit tells whether drift was reverted too often lately.
func exceedsLimit(restores []time.Time, now time.Time) bool {
	lately := 0
	for _, at := range restores {
		if now.Sub(at) <= restoreWindow {
			lately++
		}
	}
	return lately >= maxRestores
}

// contestedReason says who keeps changing an object, as far as that is known.
func contestedReason(cluster string, live *unstructured.Unstructured) passage.Reason {
	who := "another client"
	others := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == model.FieldOwner || e.Subresource != "" || e.Time == nil
	})
	if len(others) > 0 {
		who = slices.MaxFunc(others, func(a, b metav1.ManagedFieldsEntry) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) }).Manager
	}
	return passage.Because(model.ReasonContested, "%s %s in cluster %s was restored %d times within %s, and %s keeps changing the object: stop these changes, or remove the field from the template",
		live.GetKind(), model.NameOf(live), cluster, maxRestores, restoreWindow, who)
}

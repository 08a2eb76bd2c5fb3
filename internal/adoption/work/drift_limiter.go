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
	// maxRestores is how often an object is put back in contestSpan before it is left alone until that is over.
	maxRestores   = 5
	restoreWindow = time.Minute
)

// driftLimiter counts how often objects were put back lately.
type driftLimiter struct {
	mu       sync.Mutex
	restores map[types.UID][]time.Time
}

// exceedsLimit tells whether an object has been put back too often lately, and otherwise counts once more.
func (c *driftLimiter) exceedsLimit(work types.UID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.restores == nil {
		c.restores = map[types.UID][]time.Time{}
	}
	lately := slices.DeleteFunc(c.restores[work], func(at time.Time) bool { return now.Sub(at) > restoreWindow })
	if len(lately) >= maxRestores {
		c.restores[work] = lately
		return true
	}
	c.restores[work] = append(lately, now)
	return false
}

func (c *driftLimiter) forget(work types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.restores, work)
}

// contestedReason says who keeps changing an object, as far as that is known.
func contestedReason(cluster string, live *unstructured.Unstructured) passage.Reason {
	who := "somebody"
	others := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == model.FieldOwner || e.Subresource != "" || e.Time == nil
	})
	if len(others) > 0 {
		who = slices.MaxFunc(others, func(a, b metav1.ManagedFieldsEntry) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) }).Manager
	}
	return passage.Because(model.ReasonContested, "%s %s in cluster %s was put back %d times within %s, and %s keeps changing it: stop that, or take the field out of the resource on the hub",
		live.GetKind(), model.NameOf(live), cluster, maxRestores, restoreWindow, who)
}

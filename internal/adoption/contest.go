package adoption

import (
	"cmp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/internal/passage"
)

// ReasonContested is why an object is left alone that somebody else keeps changing.
const ReasonContested passage.Code = "Contested"

const (
	// contestRounds is how often an object is put back in contestSpan before it is left alone until that is over.
	contestRounds = 5
	contestSpan   = time.Minute
)

// contests counts how often objects were put back lately.
type contests struct {
	mu     sync.Mutex
	rounds map[types.UID][]time.Time
}

// hopeless tells whether an object has been put back too often lately, and otherwise counts once more.
func (c *contests) hopeless(work types.UID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rounds == nil {
		c.rounds = map[types.UID][]time.Time{}
	}
	lately := slices.DeleteFunc(c.rounds[work], func(at time.Time) bool { return now.Sub(at) > contestSpan })
	if len(lately) >= contestRounds {
		c.rounds[work] = lately
		return true
	}
	c.rounds[work] = append(lately, now)
	return false
}

func (c *contests) forget(work types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rounds, work)
}

// contested says who keeps changing an object, as far as that is known.
func contested(cluster string, live *unstructured.Unstructured) passage.Reason {
	who := "somebody"
	others := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldOwner || e.Subresource != "" || e.Time == nil
	})
	if len(others) > 0 {
		who = slices.MaxFunc(others, func(a, b metav1.ManagedFieldsEntry) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) }).Manager
	}
	return passage.Because(ReasonContested, "%s %s in cluster %s was put back %d times within %s, and %s keeps changing it: stop that, or take the field out of the resource on the hub",
		live.GetKind(), nameOf(live), cluster, contestRounds, contestSpan, who)
}

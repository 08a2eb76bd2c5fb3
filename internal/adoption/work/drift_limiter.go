package work

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

const (
	// maxRestores is how often drift is reverted within restoreWindow before an object is left alone for the rest of it.
	maxRestores   = 5
	restoreWindow = time.Minute
)

// driftLimiter has when the drift of the objects of Works was reverted.
type driftLimiter struct {
	kube.DriftLimiter[types.UID]
}

func (l *driftLimiter) recent(work types.UID, now time.Time) []time.Time {
	return l.Recent(work, now, restoreWindow)
}

func (l *driftLimiter) record(work types.UID, now time.Time) { l.Record(work, now, restoreWindow) }

func (l *driftLimiter) forget(work types.UID) {
	l.Forget(func(uid types.UID) bool { return uid == work })
}

// exceedsLimit tells whether drift was reverted too often lately.
func exceedsLimit(restores []time.Time, now time.Time) bool {
	return len(kube.Within(restores, now, restoreWindow)) >= maxRestores
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

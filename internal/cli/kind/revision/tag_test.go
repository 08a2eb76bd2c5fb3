package revision

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func makeTag(current string, status metav1.ConditionStatus, reason v1.Reason) *v1.IstioRevisionTag {
	tag := &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	tag.Status.IstioRevision = current
	if status != "" {
		tag.Status.Conditions = []metav1.Condition{{Type: string(v1.ConditionReconciled), Status: status, Reason: string(reason)}}
	}
	return tag
}

func paused(tag *v1.IstioRevisionTag) *v1.IstioRevisionTag {
	tag.Annotations = map[string]string{fairlead.AnnotationPaused: "true"}
	return tag
}

func deleted(tag *v1.IstioRevisionTag) *v1.IstioRevisionTag {
	tag.DeletionTimestamp = &metav1.Time{Time: now}
	return tag
}

func edited(tag *v1.IstioRevisionTag) *v1.IstioRevisionTag {
	tag.Generation = tag.Status.ObservedGeneration + 1
	return tag
}

func TestStatusOfTag(t *testing.T) {
	cases := map[string]struct {
		tag    *v1.IstioRevisionTag
		target string
		want   string
	}{
		"there": {
			makeTag("new", "True", v1.ReasonReconciled), "new",
			`to new: Completed, Done ""->"new" Reconciled`,
		},
		"waits for its target": {
			makeTag("old", "False", v1.ReasonIstiodNotReady), "new",
			`to new: InProgress, Running "old"->"new" IstiodNotReady`,
		},
		"paused before it moved": {
			paused(makeTag("old", "False", v1.ReasonPaused)), "new",
			`to new: Held, Pending "old"->"new" Paused`,
		},
		"paused with nothing to do": {
			paused(makeTag("new", "True", v1.ReasonPaused)), "new",
			`to new: Completed, Done ""->"new" Paused`,
		},
		"deleted while it was paused, which holds up no removal": {
			deleted(paused(makeTag("old", "False", v1.ReasonBeingDeleted))), "new",
			`to new: InProgress, Running "old"->"new" BeingDeleted`,
		},
		"the target has changed, and nobody has seen it": {
			makeTag("old", "True", v1.ReasonReconciled), "new",
			`to new: InProgress, Running "old"->"new" ReconcileError`,
		},
		"has no target": {
			makeTag("old", "False", v1.ReasonRefNotFound), "",
			`to : Failed, Failed "old"->"" RefNotFound`,
		},
		"had no target, and nobody has seen the new reference": {
			edited(makeTag("old", "False", v1.ReasonRefNotFound)), "new",
			`to new: InProgress, Running "old"->"new" ReconcileError`,
		},
		"nobody has looked at it": {
			makeTag("", "", ""), "new",
			`to new: InProgress, Running ""->"new" ReconcileError`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			report := newStatus(planFromStatus(c.tag, c.target), nil, true, nil, now)
			s := report.Steps[0]
			got := fmt.Sprintf("to %s: %s, %s %q->%q %s", report.Target, report.State, s.State, s.From, s.To, s.Reason.Code)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

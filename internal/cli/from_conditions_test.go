package cli

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/istio"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

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
			`to : CompletedWithFailures, Failed "old"->"" RefNotFound`,
		},
		"nobody has looked at it": {
			makeTag("", "", ""), "new",
			`to new: InProgress, Running ""->"new" ReconcileError`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			report := newStatusReport(account{Plan: planTag(c.tag, c.target)}, now)
			s := report.Steps[0]
			got := fmt.Sprintf("to %s: %s, %s %q->%q %s", report.Target, report.State, s.State, s.From, s.To, s.Reason.Code)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMarkTagMoves(t *testing.T) {
	const before, active, next = "default-v1-23-0", "default-v1-24-0", "v1.26.0"
	cases := map[string]struct {
		version string
		tag     *v1.IstioRevisionTag
		want    []passage.State
	}{
		"to another version":         {next, makeTag(active, "True", v1.ReasonReconciled), []passage.State{passage.Pending}},
		"for the first time":         {next, makeTag("", "", ""), []passage.State{passage.Pending}},
		"paused":                     {next, paused(makeTag(active, "True", v1.ReasonPaused)), []passage.State{passage.Running}},
		"without its name":           {next, makeTag("", "False", v1.ReasonNameAlreadyExists), []passage.State{passage.Running}},
		"already on its way":         {"v1.24.0", makeTag(before, "False", v1.ReasonIstiodNotReady), []passage.State{passage.Running}},
		"there, and nothing changes": {"v1.24.0", makeTag(active, "True", v1.ReasonReconciled), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			subject := &v1.Istio{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "1"}}
			subject.Spec.Version = c.version
			subject.Spec.UpdateStrategy.Type = v1.UpdateStrategyRevisionBased
			subject.Status.ActiveRevisionName = active
			revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: active}, Spec: v1.IstioRevisionSpec{Version: "v1.24.0"}}
			revision.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(subject, v1.GroupVersion.WithKind(v1.IstioKind))}
			plan := istio.Plan(istio.Observed{
				Istio:     subject,
				Revisions: []istio.Revision{{IstioRevision: revision, Written: revision.Spec}},
				Tags:      []v1.IstioRevisionTag{*c.tag},
				Charts:    istio.Charts{Versions: []string{"v1.24.0", next}},
				Users:     noUsers{},
			}, now)
			for _, s := range passage.Next(plan, passage.Batching{}, now).Start {
				if s.Action == istio.ActionMove {
					t.Error("the operator would move the tag itself")
				}
			}
			markTagMoves(plan, active)
			var got []passage.State
			for _, s := range plan.Steps {
				if s.Action == istio.ActionMove {
					got = append(got, s.State)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type noUsers struct{}

func (noUsers) Revision(string) usage.Usage { return usage.Usage{} }

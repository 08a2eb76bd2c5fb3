package istio

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/istio"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func istioObject(name string) passage.Object {
	return passage.Object{APIVersion: "sailoperator.io/v1", Kind: "Istio", Name: name}
}

func step(action, name string, state passage.State, message string) passage.Step {
	return passage.Step{
		Object: passage.Object{APIVersion: "sailoperator.io/v1", Kind: "IstioRevision", Name: name},
		Action: passage.Action(action),
		To:     "v1.24.0",
		State:  state,
		Reason: passage.Because("Why", "%s", message),
	}
}

func planOf(hold *passage.Reason, steps ...passage.Step) passage.Plan {
	return passage.Plan{Passage: "revision", Subject: istioObject("default"), Target: "default-v1-24-0", Hold: hold, Steps: steps}
}

func code(err error) int { return console.ExitCode(err, true) }

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

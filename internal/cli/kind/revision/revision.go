// Package revision is what commands know about an IstioRevision and an IstioRevisionTag.
package revision

import (
	"context"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Kind is IstioRevision.
type Kind struct{}

func (*Kind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{v1.GroupVersion.WithKind(v1.IstioRevisionKind).GroupKind()}
}

func (*Kind) Hints() map[string]string {
	return map[string]string{"plan": "the plan of an IstioRevision follows from the Istio that owns it: `fairlead plan istio NAME`"}
}

func (*Kind) Status(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error) {
	var revision v1.IstioRevision
	if err := r.Get(ctx, reader, &revision); err != nil {
		return nil, err
	}
	users, err := usage.List(ctx, reader)
	if err != nil {
		return nil, err
	}
	conditions, reported := revision.Status.Conditions, revision.Status.ObservedGeneration == revision.Generation
	plan := planFromConditions(v1.IstioRevisionKind, &revision, passage.Step{Action: installer.ActionInstall, To: revision.Spec.Version},
		conditions, reported, v1.ConditionReconciled, v1.ConditionReady)
	s := newStatus(plan, conditions, reported, users.References(r.Key.Name), time.Now())
	s.Charts = revision.Status.Charts
	return s, nil
}

// status is how far the operator is with a revision or a tag.
type status struct {
	render.StatusReport
	// References are what uses the resource.
	References []usage.Reference `json:"references,omitzero"`
	// Charts are those that a revision was installed from.
	Charts []v1.ChartDigest `json:"charts,omitempty"`
}

func newStatus(plan passage.Plan, conditions []metav1.Condition, reported bool, references []usage.Reference, now time.Time) *status {
	s := &status{
		StatusReport: render.NewStatusReport(plan, passage.Batching{}, conditions, reported, now),
		References:   append([]usage.Reference{}, references...),
	}
	s.NeedsUser = NeedsUser(conditions)
	return s
}

func (s *status) PrintDetails(w io.Writer, format render.Format) {
	s.StatusReport.PrintDetails(w, format)
	render.PrintList(w, format, []string{"USED BY", "NAMESPACE", "NAME", "THROUGH"}, s.References, func(ref usage.Reference) []string {
		return []string{ref.Kind, render.OrDash(ref.Namespace), ref.Name, ref.By}
	})
	if format != render.Wide {
		return
	}
	render.PrintList(w, format, []string{"CHART", "VERSION", "DIGEST"}, s.Charts, func(chart v1.ChartDigest) []string {
		return []string{chart.Name, chart.Version, chart.Digest}
	})
}

package policy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
)

// status is how far the operator is with a policy.
type status struct {
	render.StatusReport
	// Adoption is how far it is in each cluster.
	Adoption *adoptionStatus `json:"adoption,omitempty"`
}

func (*Kind) Status(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error) {
	object, err := getPolicy(ctx, reader, r)
	if err != nil {
		return nil, err
	}
	p := policy.Of(object)
	plan, err := forecast.Status(ctx, reader, p)
	if err != nil {
		return nil, err
	}
	plan.Steps = append(plan.Steps, leaderSteps(readLease(ctx, r.Cluster.Config), plan.Subject, time.Now())...)
	observed := p.Status.ObservedGeneration == p.Generation
	report := render.NewStatusReport(plan, passage.Batching{}, p.Status.Conditions, observed, time.Now())
	if p.Aborted {
		countReleased(&report, p, plan)
	}
	return &status{report, newAdoptionStatus(plan)}, nil
}

// countReleased counts what an abort has released, of all that there was: bindings that are gone have no step.
func countReleased(report *render.StatusReport, p *policy.Policy, plan passage.Plan) {
	released, total := forecast.AbortProgress(p, plan)
	if total == 0 {
		return
	}
	report.Progress = passage.Counts{Total: total, Done: released, Running: total - released}
	counts := fmt.Sprintf("%d of %d released", released, total)
	if report.State == passage.Completed {
		counts += ": " + report.Headline
	}
	report.Headline = counts
}

func (s *status) PrintDetails(w io.Writer, format render.Format) {
	s.printAdoption(w, format)
	render.PrintConditions(w, format, s.Conditions, s.At)
}

func (s *status) DrawDetails(w io.Writer) { s.printAdoption(w, render.Text) }

// WriteChanges writes how many objects are done, for there may be thousands, and those that failed.
func (s *status) WriteChanges(l *render.LineWriter) {
	l.Line("state", fmt.Sprintf("%s: %s", s.Subject, s.State))
	l.Line("headline", s.Headline)
	for _, failed := range s.Failures {
		l.OnChange(failed.Object.String(), failed.Reason.String(), render.StepText(failed))
	}
}

// adoptionStatus is how far a policy is in each cluster.
type adoptionStatus struct {
	Clusters []clusterStatus `json:"clusters"`
}

type clusterStatus struct {
	Cluster string `json:"cluster"`
	// Counts are of objects.
	passage.Counts
}

// newAdoptionStatus counts steps by cluster. What is in none yet is left to the others.
func newAdoptionStatus(plan passage.Plan) *adoptionStatus {
	byCluster := map[string][]passage.Step{}
	for _, s := range plan.Steps {
		if s.Object.Cluster != "" {
			byCluster[s.Object.Cluster] = append(byCluster[s.Object.Cluster], s)
		}
	}
	a := &adoptionStatus{Clusters: []clusterStatus{}}
	for cluster, steps := range byCluster {
		a.Clusters = append(a.Clusters, clusterStatus{cluster, passage.Plan{Steps: steps}.Counts()})
	}
	slices.SortFunc(a.Clusters, func(a, b clusterStatus) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return a
}

func (s *status) printAdoption(w io.Writer, format render.Format) {
	if s.Progress.Total > 0 {
		fmt.Fprintf(w, "%s\n", render.Bar(s.Progress))
	}
	render.PrintList(w, format, []string{"CLUSTER", "APPLIED", "WAITING", "FAILED"}, s.Adoption.Clusters, func(c clusterStatus) []string {
		return []string{c.Cluster, fmt.Sprintf("%d/%d", c.Done, c.Total), strconv.Itoa(c.Running + c.Pending), strconv.Itoa(c.Failed)}
	})
	open, more := render.Limit(format, failedFirst(listed(s.Steps)))
	render.PrintList(w, format, []string{"CLUSTER", "OBJECT", "STATE", "WHY"}, open, func(step passage.Step) []string {
		return []string{render.OrDash(step.Object.Cluster), render.NameInCluster(step.Object), string(step.State), step.Reason.Message}
	})
	render.PrintMore(w, "", more)
}

// listed are the steps that are not done, and those of resources that follow an earlier policy.
func listed(steps []passage.Step) []passage.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s passage.Step) bool { return s.State == passage.Done && s.Reason.Code != model.ReasonDeferred })
}

func failedFirst(steps []passage.Step) []passage.Step {
	failed := func(s passage.Step) bool { return s.State == passage.Failed }
	others := slices.DeleteFunc(slices.Clone(steps), failed)
	return append(slices.DeleteFunc(steps, func(s passage.Step) bool { return !failed(s) }), others...)
}

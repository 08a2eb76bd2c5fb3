package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
)

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

func printAdoptionStatus(w io.Writer, format render.Format, r statusReport) {
	if r.Adoption == nil {
		return
	}
	if r.Progress.Total > 0 {
		fmt.Fprintf(w, "%s\n", render.Bar(r.Progress))
	}
	var rows [][]string
	for _, c := range r.Adoption.Clusters {
		rows = append(rows, []string{
			c.Cluster, fmt.Sprintf("%d/%d", c.Done, c.Total), strconv.Itoa(c.Running + c.Pending), strconv.Itoa(c.Failed),
		})
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
		render.Table(w, format.Width(), []string{"CLUSTER", "APPLIED", "WAITING", "FAILED"}, rows)
	}
	open := unfinished(r.Steps)
	more := 0
	if format != render.Wide && len(open) > render.MaxRows {
		more = len(open) - render.MaxRows
		open = open[:render.MaxRows]
	}
	if len(open) > 0 {
		fmt.Fprintln(w)
		rows = nil
		for _, s := range open {
			rows = append(rows, []string{render.OrDash(s.Object.Cluster), render.NameInCluster(s.Object), string(s.State), s.Reason.Message})
		}
		render.Table(w, format.Width(), []string{"CLUSTER", "OBJECT", "STATE", "WHY"}, rows)
	}
	if more > 0 {
		fmt.Fprintf(w, "... and %d more: -o wide shows all\n", more)
	}
}

// unfinished are the steps that are not done, those that have failed first.
func unfinished(steps []passage.Step) []passage.Step {
	var failed, others []passage.Step
	for _, s := range steps {
		switch s.State {
		case passage.Done:
		case passage.Failed:
			failed = append(failed, s)
		default:
			others = append(others, s)
		}
	}
	return append(failed, others...)
}

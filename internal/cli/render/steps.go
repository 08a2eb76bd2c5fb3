package render

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/fairlead/fairlead/internal/passage"
)

// Open are the steps that are not done.
func Open(steps []passage.Step) []passage.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s passage.Step) bool { return s.State == passage.Done })
}

// Pending are the steps that have not started.
func Pending(plan passage.Plan) []passage.Step {
	return slices.DeleteFunc(slices.Clone(plan.Steps), func(s passage.Step) bool { return s.State != passage.Pending })
}

// PrintSteps prints a row for each step.
func PrintSteps(w io.Writer, format Format, steps []passage.Step) {
	PrintList(w, format, []string{"ACTION", "OBJECT", "FROM", "TO", "STATE", "WHY"}, steps, func(s passage.Step) []string {
		return []string{string(s.Action), s.Object.String(), OrDash(s.From), OrDash(s.To), string(s.State), s.Reason.Message}
	})
}

// NameInCluster leaves out the cluster, where another column has it.
func NameInCluster(o passage.Object) string {
	o.Cluster = ""
	return o.String()
}

// SortByBatch puts steps in the order in which they run: namespaces, then batches, then those that are in none.
func SortByBatch(steps []passage.Step) []passage.Step {
	turn := func(s passage.Step) int {
		switch {
		case s.Object.Kind == "Namespace":
			return 0
		case s.Batch > 0:
			return s.Batch
		}
		return math.MaxInt
	}
	sorted := slices.Clone(steps)
	slices.SortStableFunc(sorted, func(a, b passage.Step) int { return cmp.Compare(turn(a), turn(b)) })
	return sorted
}

// BatchText is the batch of a step.
func BatchText(s passage.Step) string {
	if s.Batch == 0 {
		return "-"
	}
	return fmt.Sprint(s.Batch)
}

// StateText is the state of a step with how far it is.
func StateText(s passage.Step) string {
	if s.Progress != "" && s.State == passage.Running {
		return s.Progress
	}
	return string(s.State)
}

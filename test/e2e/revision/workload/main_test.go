// Package workload_test looks at how workloads move to the active revision, as their owners and the owner of the mesh
// see it: they apply YAML to a cluster where the operator works with the chart's permissions, and watch.
//
// Tests and subtests carry the words of the design's test plan. One cluster and one operator serve all tests but those
// that disturb one of them. Each test has an Istio of its own, and namespaces that choose its revisions. A test that kills
// the operator does not run in parallel with others.
package workload_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// unanswered are errors of an API server that is starved, or gone as it is at the end.
var unanswered = regexp.MustCompile(`connection refused|connection reset|connection lost|EOF|timed out|timeout|deadline exceeded|time allotted`)

// late are events about objects of a namespace that a test has deleted meanwhile.
var late = regexp.MustCompile(`Server rejected event.*(being terminated|not found)`)

func TestMain(m *testing.M) {
	cluster.Parallel(12)
	code := cluster.Run(m, cluster.Options{})
	// Nothing that the tests did was wrong, and the chart's permissions allow all that it took.
	if w := shared.Value(); w != nil {
		for _, operator := range w.operators {
			for line := range strings.Lines(operator.Log.Since(0)) {
				if strings.Contains(line, "level=ERROR") && !unanswered.MatchString(line) && !late.MatchString(line) {
					fmt.Fprint(os.Stderr, "the operator complained: ", line)
					code = max(code, 1)
				}
			}
		}
	}
	os.Exit(code)
}

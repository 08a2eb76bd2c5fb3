package revision_test

import (
	"testing"

	"github.com/fairlead/fairlead/test/harness"
)

// process is a running operator.
type process struct{ *harness.Operator }

// result is what a command printed and how it ended.
type result struct {
	code           int
	stdout, stderr string
}

// fairlead runs the command line as the administrator of the cluster.
func (w *world) fairlead(t testing.TB, args ...string) result {
	t.Helper()
	r := harness.RunCommand(t, w.Cluster, args...)
	return result{r.Code, r.Stdout, r.Stderr}
}

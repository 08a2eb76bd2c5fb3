package revision_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// Whoever asks why an upgrade does not go on is told that a tag is paused, wherever they ask.
func TestPausedTag(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, system := shortName(t), w.namespace(t)
	first, second, tagName := name+"-v1-24-0", name+"-v1-26-0", name+"-tag"
	istio := harness.Create(t, w, revisionBased(name, system, "v1.24.0", time.Hour))
	tag := harness.Create(t, w, makeTag(tagName, v1.IstioKind, name))
	w.points(t, tag, first)

	asks := func(command string, code int, wants ...string) {
		t.Helper()
		got := w.fairlead(t, append(strings.Fields(command), "-o", "wide")...)
		// Columns are as wide as names are long.
		said := strings.Join(strings.Fields(got.stdout), " ")
		for _, want := range wants {
			if got.code != code || !strings.Contains(said, want) {
				t.Errorf("%s: exit code %d, want %d and %q:\n%s", command, got.code, code, want, got.stdout)
			}
		}
	}
	upgrade := "plan istio " + name + " --version v1.26.0 --chart-dir " + cluster.Charts(t)
	move := "move IstioRevisionTag " + tagName + " " + first + " " + second
	asks(upgrade, 3, ": 2 changes.", move+" Pending")

	w.fairlead(t, "pause", "istiorevisiontag", tagName)
	says(t, w, tag, v1.ConditionReconciled, v1.ReasonPaused)
	resume := "resume with `fairlead resume istiorevisiontag " + tagName + "`"
	asks(upgrade, 3, ": 1 change.", move+" Running paused", resume)
	asks("status istiorevisiontag "+tagName, 0, " to "+first+": Completed", resume)

	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Version = "v1.26.0" })
	ready(t, w, istio)
	until(t, w, tag, func(tag *v1.IstioRevisionTag) error {
		if c := condition(tag, v1.ConditionReconciled); c.Reason != string(v1.ReasonPaused) || c.Status != metav1.ConditionFalse {
			return errors.New("it has not noticed that it should move")
		}
		return nil
	})
	asks("status istio "+name, 3, move+" Running paused", resume)
	asks("status istiorevisiontag "+tagName, 3, " to "+second+": Held", first+" "+second+" Pending", resume)

	w.fairlead(t, "resume", "istiorevisiontag", tagName)
	w.points(t, tag, second)
	asks("status istiorevisiontag "+tagName, 0, " to "+second+": Completed")
}

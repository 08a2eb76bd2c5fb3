package revision_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// Values that the charts put where the API server will not have them. That is said in the log, and said once, however often
// the operator looks at it.
func TestRefusedValues(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	cases := map[string]struct {
		values v1.Values
		want   string
	}{
		"a value that is not allowed": {
			v1.Values{"replicaCount": int64(-1), "autoscaleEnabled": false},
			"spec.replicas: Invalid value: -1: must be greater than or equal to 0",
		},
		"a text for a number": {
			v1.Values{"replicaCount": "many", "autoscaleEnabled": false},
			".spec.replicas: expected numeric (int or float), got string",
		},
		"not a quantity": {
			v1.Values{"resources": map[string]any{"requests": map[string]any{"cpu": "lots"}}},
			"quantities must match the regular expression",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := w.operator.Log.Len()
			revision := makeRevision(shortName(t), w.namespace(t), "v1.26.0")
			revision.Spec.Values = c.values
			harness.Create(t, w, revision)
			got := says(t, w, revision, v1.ConditionReconciled, v1.ReasonRefused)
			if start := "apply Deployment " + revision.Spec.Namespace + "/istiod-" + revision.Name + ": "; got.Status != metav1.ConditionFalse ||
				!strings.HasPrefix(got.Message, start) || !strings.Contains(got.Message, c.want) ||
				!strings.HasSuffix(got.Message, "; retried every 5 minutes, and at once when the spec or the charts change") {
				t.Errorf("it says %s: %s", got.Status, got.Message)
			}

			t.Log("another reason to look at it")
			pod := makePod(w.namespace(t), "user")
			pod.Annotations = map[string]string{v1.AnnotationRevision: revision.Name}
			w.createPod(t, pod)
			says(t, w, revision, v1.ConditionInUse, v1.ReasonReferencedByWorkloads)
			wait.Until(t, func(context.Context) error {
				var lines []string
				for line := range strings.Lines(w.operator.Log.Since(began)) {
					if strings.Contains(line, "resource=istiorevision/"+revision.Name) && strings.Contains(line, "reason="+string(v1.ReasonRefused)) {
						lines = append(lines, line)
					}
				}
				if len(lines) != 1 || !strings.Contains(lines[0], "cannot apply the spec") {
					return fmt.Errorf("the log says\n%s", strings.Join(lines, ""))
				}
				return nil
			})
			harness.Change(t, w, revision, func(r *v1.IstioRevision) { r.Spec.Values = nil })
			ready(t, w, revision)
		})
	}
}

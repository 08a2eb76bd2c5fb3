package revision_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// What a person has to solve is said in the log, and said once, however often the operator looks at it.
func TestTroubleIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	began := w.operator.Log.Len()
	cases := map[v1.Reason]v1.Values{
		v1.ReasonTemplateError: {"profile": "nonsense"},
		v1.ReasonRefused:       {"replicaCount": "many", "autoscaleEnabled": false},
	}
	for reason, values := range cases {
		revision := makeRevision(shortName(t), w.namespace(t), "v1.26.0")
		revision.Spec.Values = values
		create(t, w, revision)
		says(t, w, revision, v1.ConditionReconciled, reason)

		t.Logf("%s: another reason to look at it", reason)
		pod := makePod(w.namespace(t), "user")
		pod.Annotations = map[string]string{v1.AnnotationRevision: revision.Name}
		create(t, w, pod)
		says(t, w, revision, v1.ConditionInUse, v1.ReasonReferencedByWorkloads)
		eventually(t, func(context.Context) error {
			var lines []string
			for line := range strings.Lines(w.operator.Log.Since(began)) {
				if strings.Contains(line, "resource=istiorevision/"+revision.Name) && strings.Contains(line, "reason="+string(reason)) {
					lines = append(lines, line)
				}
			}
			if len(lines) != 1 || !strings.Contains(lines[0], "the spec cannot be carried out") {
				return fmt.Errorf("%s: the log says\n%s", reason, strings.Join(lines, ""))
			}
			return nil
		})
	}
}

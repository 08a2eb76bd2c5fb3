package materialize

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestPrintPlanWithoutFromAndTo(t *testing.T) {
	object := passage.Object{APIVersion: "materialize.cloud/v1alpha2", Kind: "Materialize", Name: "mz"}
	plan := passage.Plan{Passage: "rollout", Subject: object, Target: "generation 2", Steps: []passage.Step{
		{Object: object, Action: "request", To: strings.Repeat("0123456789abcdef", 4), State: passage.Pending, Reason: passage.Because("First", "this is the first rollout")},
		{Object: object, Action: "await", State: passage.Running, Progress: "0 of 1 ready", Reason: passage.Because("NotReady", "its pods have yet to get ready")},
	}}
	var out bytes.Buffer
	printPlan(&out, render.Text, plan)
	want := `Materialize mz to generation 2: 1 change.

ACTION    OBJECT           STATE          WHY
request   Materialize mz   Pending        this is the first rollout
await     Materialize mz   0 of 1 ready   its pods have yet to get ready
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

package render

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/passage"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func istioObject(name string) passage.Object {
	return passage.Object{APIVersion: "sailoperator.io/v1", Kind: "Istio", Name: name}
}

func step(action, name string, state passage.State, message string) passage.Step {
	return passage.Step{
		Object: passage.Object{APIVersion: "sailoperator.io/v1", Kind: "IstioRevision", Name: name},
		Action: passage.Action(action),
		To:     "v1.24.0",
		State:  state,
		Reason: passage.Because("Why", "%s", message),
	}
}

func planOf(hold *passage.Reason, steps ...passage.Step) passage.Plan {
	return passage.Plan{Passage: "revision", Subject: istioObject("default"), Target: "default-v1-24-0", Hold: hold, Steps: steps}
}

func code(err error) int { return console.ExitCode(err, true) }

func TestPrintPlan(t *testing.T) {
	cases := map[string]struct {
		plan passage.Plan
		want string
		code int
	}{
		"a change": {
			planOf(nil, step("create", "default-v1-24-0", passage.Pending, "Istio default asks for v1.24.0")),
			`Istio default to default-v1-24-0: 1 change.

ACTION   OBJECT                          FROM   TO        STATE     WHY
create   IstioRevision default-v1-24-0   -      v1.24.0   Pending   Istio default asks for v1.24.0
`, console.ExitUnfinished,
		},
		"a change that is held": {
			planOf(passage.Hold("Paused", "paused by hand"), step("create", "r", passage.Pending, "asked for")),
			`Held: paused by hand
Istio default to default-v1-24-0: 1 change.

ACTION   OBJECT            FROM   TO        STATE     WHY
create   IstioRevision r   -      v1.24.0   Pending   asked for
`, console.ExitUnfinished,
		},
		"nothing to do, though not all is ready": {
			planOf(nil, step("run", "r", passage.Running, "not installed")),
			`Nothing to do for Istio default but to wait.

ACTION   OBJECT            FROM   TO        STATE     WHY
run      IstioRevision r   -      v1.24.0   Running   not installed
`, console.ExitOK,
		},
		"nothing to do": {
			planOf(nil, step("run", "r", passage.Done, "serves")),
			"Nothing to do for Istio default.\n", console.ExitOK,
		},
		"a long story": {
			planOf(nil, step("create", "default-v1-24-0", passage.Pending, "once upon a time there was an Istio that asked for v1.24.0")),
			`Istio default to default-v1-24-0: 1 change.

ACTION   OBJECT                          FROM   TO        STATE     WHY
create   IstioRevision default-v1-24-0   -      v1.24.0   Pending   once upon a time there was an
                                                                    Istio that asked for v1.24.0
`, console.ExitUnfinished,
		},
		"something stands in the way": {
			planOf(nil, step("create", "r", passage.Failed, "the name is taken")),
			`Istio default cannot continue.

ACTION   OBJECT            FROM   TO        STATE    WHY
create   IstioRevision r   -      v1.24.0   Failed   the name is taken
`, console.ExitFailed,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			PrintPlan(&out, Text, c.plan)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
			if got := code((&PlanReport{Plan: c.plan}).ExitError()); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
		})
	}
}

func TestPrintStatus(t *testing.T) {
	condition := metav1.Condition{
		Type: "Ready", Status: "False", Reason: "IstiodNotReady", Message: "not installed",
		LastTransitionTime: metav1.NewTime(now.Add(-90 * time.Second)),
	}
	cases := map[string]struct {
		plan       passage.Plan
		conditions []metav1.Condition
		reported   bool
		want       string
		code       int
	}{
		"in progress": {
			planOf(nil, step("run", "default-v1-24-0", passage.Running, "not installed")), []metav1.Condition{condition}, true,
			`Istio default to default-v1-24-0: InProgress
0 of 1 done, 1 running

ACTION   OBJECT                          FROM   TO        STATE     WHY
run      IstioRevision default-v1-24-0   -      v1.24.0   Running   not installed

CONDITION   STATUS   REASON           SINCE   MESSAGE
Ready       False    IstiodNotReady   90s     not installed
`, console.ExitUnfinished,
		},
		"done": {
			planOf(nil, step("run", "r", passage.Done, "serves")), nil, true,
			`Istio default to default-v1-24-0: Completed
1 of 1 done

ACTION   OBJECT            FROM   TO        STATE   WHY
run      IstioRevision r   -      v1.24.0   Done    serves
`, console.ExitOK,
		},
		"done, but the operator has not said so": {
			planOf(nil, step("run", "r", passage.Done, "serves")), nil, false,
			`Istio default to default-v1-24-0: Completed
1 of 1 done
The operator has not reported on the latest spec yet: is it running?

ACTION   OBJECT            FROM   TO        STATE   WHY
run      IstioRevision r   -      v1.24.0   Done    serves
`, console.ExitUnfinished,
		},
		"failed": {
			planOf(nil, step("create", "r", passage.Failed, "taken")), nil, true,
			`Istio default to default-v1-24-0: Failed
0 of 1 done, 1 failed

ACTION   OBJECT            FROM   TO        STATE    WHY
create   IstioRevision r   -      v1.24.0   Failed   taken
`, console.ExitFailed,
		},
		"paused": {
			planOf(passage.Hold("Paused", "paused by hand"), step("create", "r", passage.Pending, "asked for")), nil, true,
			`Istio default to default-v1-24-0: Held
0 of 1 done: paused by hand

ACTION   OBJECT            FROM   TO        STATE     WHY
create   IstioRevision r   -      v1.24.0   Pending   asked for
`, console.ExitUnfinished,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			report := NewStatusReport(c.plan, passage.Batching{}, c.conditions, c.reported, now)
			PrintStatus(&out, Text, &report)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
			if got := code(report.ExitError()); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
		})
	}
}

func TestTablesFit(t *testing.T) {
	long := strings.Repeat("ä very long story, ", 20)
	plan := planOf(nil,
		step("create", strings.Repeat("long", 20), passage.Pending, long),
		step("create", "short", passage.Pending, "short"))
	var out bytes.Buffer
	PrintPlan(&out, Text, plan)
	for line := range strings.Lines(out.String()) {
		if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > Columns {
			t.Errorf("%d columns: %s", width, line)
		}
	}
	out.Reset()
	PrintPlan(&out, Wide, plan)
	if !strings.Contains(out.String(), strings.TrimSpace(long)) {
		t.Error("-o wide cuts as well")
	}
}

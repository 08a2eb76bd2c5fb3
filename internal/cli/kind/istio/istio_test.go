package istio

import (
	"time"

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

package materialize

import (
	"testing"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout"
)

func TestFailCertificates(t *testing.T) {
	internal := func(m *v1alpha2.Materialize) { m.Spec.InternalCertificateSpec = &v1alpha2.CertificateSpec{} }
	consoleCert := func(m *v1alpha2.Materialize) { m.Spec.ConsoleExternalCertificateSpec = &v1alpha2.CertificateSpec{} }
	v1 := spec("v1")
	const both = "cert-manager is not installed, and the spec requires a Certificate in internalCertificateSpec, " +
		"consoleExternalCertificateSpec: install cert-manager, or remove those fields"
	cases := map[string]struct {
		scene    scene
		proposed *v1alpha2.Materialize
		want     string
		failures int
		code     int
	}{
		"nothing is asked for":     {scene{m: v1, serves: v1, phase: v1alpha2.ReasonApplied}, spec("v2"), "", 0, console.ExitUnfinished},
		"proposed":                 {scene{m: v1, serves: v1, phase: v1alpha2.ReasonApplied}, spec("v1", internal, consoleCert), both, 2, console.ExitFailed},
		"there, and to be removed": {scene{m: spec("v1", internal), serves: v1, phase: v1alpha2.ReasonApplying}, v1, "", 0, console.ExitUnfinished},
		"the first of all":         {scene{m: spec("v1", internal, consoleCert)}, nil, both, 2, console.ExitFailed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := c.scene.environment(t)
			if c.proposed != nil {
				c.proposed.Status = e.Materialize.Status
			}
			e.NoCertManager = true
			result := e.newPlan(c.proposed, now)
			if result.Rollout.Obstacle != c.want {
				t.Errorf("%q, want %q", result.Rollout.Obstacle, c.want)
			}
			for _, failed := range result.Failures() {
				if failed.Action != rollout.ActionApplyShared || failed.State != passage.Failed {
					t.Errorf("%+v", failed)
				}
			}
			if got := len(result.Failures()); got != c.failures {
				t.Errorf("%d steps fail, want %d", got, c.failures)
			}
			if got := code(result.ExitError()); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
		})
	}
}

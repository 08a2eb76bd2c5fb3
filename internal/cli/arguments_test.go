package cli

import (
	"errors"
	"testing"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
)

func TestSuggestType(t *testing.T) {
	for typed, want := range map[string]string{
		"isto":                  `the cluster has no resource type "isto": did you mean istio?`,
		"istoi":                 `the cluster has no resource type "istoi": did you mean istio?`,
		"mesj":                  `the cluster has no resource type "mesj": did you mean mesh?`,
		"PropagationPolcy":      `the cluster has no resource type "PropagationPolcy": did you mean propagationpolicy?`,
		"istio":                 "the cluster has no resource type \"istio\": CRD istios.sailoperator.io is not installed there; to install it, run `fairlead crds install`",
		"Istio.sailoperator.io": "the cluster has no resource type \"Istio.sailoperator.io\": CRD istios.sailoperator.io is not installed there; to install it, run `fairlead crds install`",
		"pp":                    "the cluster has no resource type \"pp\": CRD propagationpolicies.policy.karmada.io is not installed there; to install it, run `fairlead crds install`",
		"spaceship": `the cluster has no resource type "spaceship": Fairlead's are clusterpropagationpolicy, istio, istiorevision, ` +
			"istiorevisiontag, materialize, mesh, propagationpolicy",
	} {
		got := suggestType(connect.UnknownTypeError{Type: typed}, newKinds())
		if got.Error() != want || console.ExitCode(got, true) != console.ExitUsage {
			t.Errorf("%s: exit code %d, %v", typed, console.ExitCode(got, true), got)
		}
	}
	if other := errors.New("refused"); suggestType(other, newKinds()) != other {
		t.Error("another error is replaced")
	}
}

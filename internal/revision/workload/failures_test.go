package workload

import (
	"testing"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestLegacyCode(t *testing.T) {
	cases := map[string]struct {
		kind, reason string
		want         v1.Reason
	}{
		"a refused Deployment": {"Deployment", `the API server refused it: deployments.apps "cart" is forbidden: frozen`, v1.ReasonRefused},
		"a refused namespace":  {"Namespace", `the API server refused it: namespaces "shop" is forbidden: frozen`, v1.ReasonRefused},
		"a contested label": {"Namespace", "its label was moved to default-v1-26-0 3 times, and somebody sets it back to " +
			"default-v1-24-0 each time; change it where that comes from, such as a manifest in git", v1.ReasonContested},
		"a timeout":                           {"Deployment", "Readiness timeout exceeded after 5m0s", ""},
		"a refused namespace of a Deployment": {"Deployment", "the label of namespace shop could not be moved: the API server refused it: no", ""},
		"a failure that was not reported":     {"Deployment", "it failed like others; the operator's log says why", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := legacyCode(v1.WorkloadMigrationFailure{Kind: tc.kind, Name: "cart", Reason: tc.reason}); got != tc.want {
				t.Errorf("code %q, want %q", got, tc.want)
			}
		})
	}
}

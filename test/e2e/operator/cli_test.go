package operator_test

import (
	"strings"
	"testing"
)

func TestCommandsRefuse(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	cases := map[string]struct {
		args []string
		code int
		want string
	}{
		"one that is not there":         {[]string{"plan", "istio", "nowhere"}, 1, "error: istio.sailoperator.io/nowhere does not exist\n"},
		"one that is not there, status": {[]string{"status", "istio", "nowhere"}, 1, "error: istio.sailoperator.io/nowhere does not exist\n"},
		"one that is not there, pause":  {[]string{"pause", "istio", "nowhere"}, 1, "error: istio.sailoperator.io/nowhere does not exist\n"},
		"a type that is not there":      {[]string{"plan", "ghost", "x"}, 2, `the cluster has no resource type "ghost"`},
		"a type without a plan":         {[]string{"plan", "istiorevision", "x"}, 2, "there is no plan to show for IstioRevision"},
		"a short name":                  {[]string{"status", "istiorev", "x"}, 1, "error: istiorevision.sailoperator.io/x does not exist\n"},
		"a core type":                   {[]string{"pause", "deploy", "x"}, 2, "no passage starts from Deployment; those that start one are ClusterPropagationPolicy, Istio, IstioRevision, IstioRevisionTag, Materialize, Mesh, PropagationPolicy"},
		"charts that are not there":     {[]string{"plan", "istio", "x", "--chart-dir", "nowhere"}, 2, "--chart-dir: stat nowhere: no such file or directory"},
		"a version that is not served":  {[]string{"plan", "istios.v9.sailoperator.io", "x"}, 2, `the cluster has no resource type "istios.v9.sailoperator.io"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fairlead(t, append(tc.args, "--kubeconfig", w.Kubeconfig())...)
			if got.code != tc.code || !strings.Contains(got.stderr, tc.want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("want exit code %d and %q, got %+v", tc.code, tc.want, got)
			}
		})
	}
}

package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/test/cluster"
)

// TestPlanThenStatus tells the story that a user sees: what would be done, then that it was.
func TestPlanThenStatus(t *testing.T) {
	c := cluster.Shared(t)
	installCRDs(t, c.Config())
	admin := administrator(t, c.Config())
	name := uniqueName(t)
	create(t, admin, revisionBased(makeIstio(name, "v1.24.0")))
	command := func(verb, kind, name string, more ...string) cliResult {
		t.Helper()
		return fairlead(t, append([]string{verb, kind, name, "--kubeconfig", c.Kubeconfig()}, more...)...)
	}

	planned := command("plan", "istio", name, "-o", "json")
	if planned.code != 3 {
		t.Errorf("plan: %+v", planned)
	}
	var plan passage.Plan
	if err := json.Unmarshal([]byte(planned.stdout), &plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Steps) != 1 || plan.Steps[0].Action != "create" || plan.Steps[0].Object.Name != name+"-v1-24-0" {
		t.Errorf("plan: %+v", plan)
	}
	for _, kind := range []string{"istios", "Istio", "istio.sailoperator.io", "istios.sailoperator.io", "istios.v1.sailoperator.io"} {
		if got := command("plan", kind, name, "-o", "json"); got != planned {
			t.Errorf("plan %s: %+v", kind, got)
		}
	}
	var fromYAML passage.Plan
	if err := yaml.Unmarshal([]byte(command("plan", "istio", name, "-o", "yaml").stdout), &fromYAML); err != nil || fromYAML.Target != plan.Target {
		t.Errorf("plan -o yaml: %v", err)
	}
	before := command("status", "istio", name)
	if before.code != 3 || !strings.Contains(before.stdout, "The operator has not reported on the latest spec yet: is it running?") {
		t.Errorf("status without an operator: %+v", before)
	}

	p := startOperator(t, c.Kubeconfig(), "--leader-election-namespace", c.Namespace(t))
	p.leading(t)
	reported(t, admin, name, "NamespaceNotFound")
	if got := command("plan", "istio", name); got.code != 0 || !strings.HasPrefix(got.stdout, "Nothing to do for Istio "+name) {
		t.Errorf("plan when done: %+v", got)
	}
	status := command("status", "istio", name)
	if status.code != 3 {
		t.Errorf("status: %+v", status)
	}
	// Long messages go over several lines.
	words := strings.Join(strings.Fields(status.stdout), " ")
	for _, want := range []string{"InProgress", "Reconciled", "NamespaceNotFound", "namespace istio-system does not exist"} {
		if !strings.Contains(words, want) {
			t.Errorf("status does not tell of %s:\n%s", want, status.stdout)
		}
	}
	for line := range strings.Lines(status.stdout) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("too wide: %s", line)
		}
	}
	var view struct {
		passage.View
		Reported   bool
		Conditions []struct{ Type string }
	}
	if err := json.Unmarshal([]byte(command("status", "istio", name, "-o", "json").stdout), &view); err != nil {
		t.Fatal(err)
	}
	if view.State != passage.InProgress || !view.Reported || len(view.Conditions) != 2 || view.Target != name+"-v1-24-0" {
		t.Errorf("status -o json: %+v", view)
	}
}

func TestCommandsRefuse(t *testing.T) {
	c := cluster.Shared(t)
	installCRDs(t, c.Config())
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
			got := fairlead(t, append(tc.args, "--kubeconfig", c.Kubeconfig())...)
			if got.code != tc.code || !strings.Contains(got.stderr, tc.want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("want exit code %d and %q, got %+v", tc.code, tc.want, got)
			}
		})
	}
}

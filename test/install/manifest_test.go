package install_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// checks has `fairlead check` find nothing wrong: the operator has every permission that the chart of its version grants.
func (w *world) checks(t testing.TB) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		r := w.try(t, "fairlead check")
		words := strings.Join(strings.Fields(r.Stdout), " ") // of a table that breaks lines
		if r.Code != 0 || !strings.Contains(words, "ServiceAccount "+operatorNamespace+"/fairlead has all ") || !strings.Contains(words, " 0 failed") {
			return fmt.Errorf("fairlead check: exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		}
		t.Logf("$ fairlead check\n%s", r.Stdout)
		return nil
	})
}

// installsWithoutHelm installs the release that is in dist/ by its install.yaml, and uninstalls it as the page says.
func (w *world) installsWithoutHelm(t testing.TB, version string) {
	t.Helper()
	w.run(t, "kubectl delete namespace kuma-system") // Helm's
	w.run(t, w.command(t, "kubectl apply", version))
	w.run(t, "kubectl -n "+operatorNamespace+" rollout status deployment/fairlead --timeout "+wait.Deadline().String())
	w.fits(t, version)
	w.checks(t)

	w.run(t, "fairlead uninstall --yes"+w.patience())
	wait.Until(t, func(context.Context) error {
		if images := w.kubelet.running(); len(images) > 0 {
			return fmt.Errorf("containers of the operator still run: %v", images)
		}
		return nil
	})
	deleted := 0
	for _, line := range w.page.Lines {
		if strings.HasPrefix(line, "kubectl delete ") {
			w.run(t, line)
			deleted++
		}
	}
	if deleted == 0 {
		t.Error("the page does not say how to delete what install.yaml has")
	}
	for name, object := range w.objects(t) {
		if object.GetLabels()["app.kubernetes.io/instance"] == "fairlead" && !slices.Contains(leftInNamespaces, name) {
			t.Errorf("%s is left", name)
		}
	}
}

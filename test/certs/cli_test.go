package certs_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/launch"
)

func TestCommands(t *testing.T) {
	w := newWorld(t, "cart", "shop")
	refused := launch.Command(t, w.cluster, "crds", "install")
	if refused.Code != 1 || !strings.Contains(refused.Stdout, "NeedsWebhook") || !strings.Contains(refused.Stderr, "start the operator") {
		t.Errorf("an install that nobody could convert for: %+v", refused)
	}
	if none := launch.Command(t, w.cluster, "crds", "migrate"); none.Code != 0 || strings.Contains(none.Stdout, "Left behind") {
		t.Errorf("a migration with nothing to do: %+v", none)
	}

	o := w.operator(nil)
	w.eventually("the operator to have migrated all", w.migrated)
	w.eventually("the operator to be ready", o.ready)
	crd, err := w.crd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	forgetful := client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1alpha1","v1alpha2"]}}`))
	if err := w.Status().Patch(t.Context(), crd, forgetful); err != nil {
		t.Fatal(err)
	}

	got := launch.Command(t, w.cluster, "crds", "migrate", crdName)
	want := `CRD                              FROM       TO         REWRITTEN   FAILED   OUTCOME
materializes.materialize.cloud   v1alpha1   v1alpha2   2           0        Migrated
`
	if got.Code != 0 || got.Stdout != want || !strings.Contains(got.Stderr, "2 of 2 objects from v1alpha1 to v1alpha2") {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	w.eventually("the command to have migrated all", w.migrated)
	if installed := launch.Command(t, w.cluster, "crds", "install"); installed.Code != 0 || !strings.Contains(installed.Stdout, "Unchanged") {
		t.Errorf("an install where the operator sees to the webhook: %+v", installed)
	}
	w.unchanged()
}

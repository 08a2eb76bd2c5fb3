package conversion_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestEnvironmentIDStays: after the first rollout, neither version lets anybody change or remove the ID by which environmentd
// finds its data.
func TestEnvironmentIDStays(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	for _, version := range []string{older, newer} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			chosen := w.deployed(t, clientSide, written(version).with("environmentId", firstRequest))
			derived := w.deployed(t, clientSide, written(version))
			own := string(derived.now(t).Status.EnvironmentID)
			for _, c := range []struct {
				what    string
				e       *environment
				id      string
				refused string
			}{
				{"another ID", chosen, `"` + secondRequest + `"`, "cannot change after the first rollout"},
				{"no ID", chosen, "null", "cannot be removed after the first rollout"},
				{"the nil UUID", chosen, `"00000000-0000-0000-0000-000000000000"`, "cannot be removed after the first rollout"},
				{"the same ID in capitals", chosen, `"` + strings.ToUpper(firstRequest) + `"`, ""},
				{"an ID instead of the derived one", derived, `"` + secondRequest + `"`, "cannot change after the first rollout"},
				{"the derived ID", derived, `"` + own + `"`, ""},
			} {
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"environmentId":%s}}`, c.id))
				err := w.Patch(t.Context(), manifest{version: version}.object(c.e.namespace), patch, client.DryRunAll)
				switch {
				case c.refused == "" && err != nil:
					t.Errorf("%s is refused: %v", c.what, err)
				case c.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.refused)):
					t.Errorf("%s gets %v, want that it %s", c.what, err, c.refused)
				}
			}
		})
	}
}

//go:build linux

package localkube_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/cluster"
)

// Charts that are newer than the istiod of localkube are no riddle.
func TestIstiodOfNewerCharts(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Profile: "hub"})
	createNamespace(t, clientOf(t, c.Config()), "istio-system", nil)
	charts := cluster.Charts(t)
	install(t, c, filepath.Join(charts, "v1.31.1", "base"), "istio-base", "istio-system", nil)
	install(t, c, filepath.Join(charts, "v1.31.1", "istiod"), "istiod-new", "istio-system", map[string]any{"revision": "new"})
	r := localkube(t, "istiod", "--dir", c.Dir, "--revision", "new", "--wait", "60s")
	const want = "it is istiod 1.24, which works with the charts of Istio 1.24 and 1.26, and cannot read those that this revision was installed from"
	if r.code != 1 || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("istiod: %s", r)
	}
}

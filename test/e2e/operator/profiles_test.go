package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestProfiles: a profile is for who may get it, and for nobody unless somebody asked for profiles.
func TestProfiles(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	admin := administrator(t, c.Config())
	i := &installation{Client: admin, config: c.Config(), namespace: c.Namespace(t)}
	r, err := renderChart("fairlead", i.namespace, map[string]any{"metrics": map[string]any{"pprof": true}})
	if err != nil {
		t.Fatal(err)
	}
	i.release = r
	var role rbacv1.ClusterRole
	r.find(t, "ClusterRole", "-profiler", &role)
	create(t, admin, &role)
	for _, name := range []string{"profiler", "stranger"} {
		create(t, admin, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: i.namespace}})
	}
	create(t, admin, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: i.namespace + ":profiler"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "profiler", Namespace: i.namespace}},
	})
	// Its metrics are served from the start, whatever it waits for.
	start := func(flags ...string) *process {
		args := append([]string{"serve-mesh", "--kubeconfig", c.Kubeconfig(), "--mesh-bind-address=127.0.0.1:0", "--mesh-insecure"}, flags...)
		return startOperatorWith(t, harness.Environment(t.TempDir()), args)
	}
	asked := func(p *process, path, token string, want int, contains string) {
		t.Helper()
		server := "https://" + p.address(t, "metrics")
		wait.Until(t, func(ctx context.Context) error {
			code, body, err := scrapePath(ctx, server+path, token)
			if err != nil || code != want || !strings.Contains(body, contains) {
				return fmt.Errorf("%s: status %d, want %d: %.200s: %w", path, code, want, body, err)
			}
			return nil
		})
	}
	profiler := i.token(t, "profiler")
	p := start("--pprof")
	asked(p, "/debug/pprof/heap?debug=1", profiler, http.StatusOK, "heap profile:")
	asked(p, "/debug/pprof/goroutine?debug=1", profiler, http.StatusOK, "goroutine profile:")
	asked(p, "/debug/pprof/heap?debug=1", i.token(t, "stranger"), http.StatusForbidden, "")
	asked(p, "/debug/pprof/heap?debug=1", "", http.StatusUnauthorized, "")
	asked(p, "/metrics", profiler, http.StatusForbidden, "")
	asked(p, "/debug/pprof/cmdline", profiler, http.StatusNotFound, "")
	asked(start(), "/debug/pprof/heap", profiler, http.StatusNotFound, "")
}

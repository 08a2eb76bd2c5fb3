package operator_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestServingPermissions runs a process that serves proxies as the ServiceAccount that the chart gives it, beside an operator, and
// shows that its permissions are enough, and that each of them is used.
func TestServingPermissions(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	admin := administrator(t, c.Config())
	electsMeshLeader(t, admin)
	namespace, shop := c.Namespace(t), c.Namespace(t)
	installCRDs(t, c.Config(), "meshservice")
	r, err := renderChart("fairlead", namespace, monitored(map[string]any{"passages": []any{"meshservice"}}))
	if err != nil {
		t.Fatal(err)
	}
	r.Objects = slices.DeleteFunc(r.Objects, func(o *unstructured.Unstructured) bool { return o.GroupVersionKind().Group == "monitoring.coreos.com" })
	// Helm would sort Namespaces before what is in them.
	if err := errors.Join(r.Apply(t.Context(), admin, "Namespace"), r.Apply(t.Context(), admin)); err != nil {
		t.Fatal(err)
	}
	var all rbacv1.ClusterRole
	var own rbacv1.Role
	r.find(t, "ClusterRole", ":fairlead-mesh", &all)
	r.find(t, "Role", "fairlead-mesh", &own)
	user := "system:serviceaccount:" + namespace + ":fairlead-mesh"
	for in, rule := range map[string]rbacv1.PolicyRule{namespace: all.Rules[0], own.Namespace: own.Rules[0]} {
		if err := harness.AwaitAuthorization(t.Context(), admin, user, in, rule); err != nil {
			t.Fatal(err)
		}
	}
	i := &installation{Client: admin, config: c.Config(), namespace: namespace, release: r}
	authority, files := servingCertificate(t, "127.0.0.1")
	line := startRecorder(t, c.Config())
	start := func(deployment, kubeconfig string, more ...string) *process {
		t.Helper()
		var d appsv1.Deployment
		r.find(t, "Deployment", deployment, &d)
		var args []string
		for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
			args = append(args, strings.ReplaceAll(arg, "/etc/fairlead/mesh", files))
		}
		args = append(append(args, "--kubeconfig", kubeconfig, "--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0"), more...)
		// An API server that cannot stream lists makes a process list, so that permission must be there too.
		return startOperatorWith(t, harness.Environment(t.TempDir(), "KUBE_FEATURE_WatchListClient=false"), args)
	}
	direct := startRecorder(t, c.Config())
	start("fairlead", direct.kubeconfigFor(t, i.token(t, "fairlead")), harness.Lease(), "--chart-cache-dir="+t.TempDir()).leading(t)
	process := start("fairlead-mesh", line.kubeconfigFor(t, i.token(t, "fairlead-mesh")), "--mesh-bind-address=127.0.0.1:0")
	process.ready(t)
	address, _ := process.logged(t, "serving proxies")["address"].(string)

	create(t, admin, &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q,%q:%q}}}`, kumav1alpha1.LabelSidecarInjection, kumav1alpha1.InjectionEnabled, kumav1alpha1.LabelMesh, shop)
	if err := admin.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}, client.RawPatch("application/merge-patch+json", label)); err != nil {
		t.Fatal(err)
	}
	// Without its ServiceAccount, which a new namespace gets a moment later, no pod is admitted.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "default"}}
	harness.WaitFor(t, admin, account, func(*corev1.ServiceAccount) error { return nil })
	pod := create(t, admin, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "cart"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "cart", Image: "cart"}}},
	})
	node := fmt.Sprintf("%s.%s.%s", shop, pod.Name, shop)
	wait.Until(t, func(ctx context.Context) error {
		return connectProxy(ctx, t, address, authority, node, podToken(t, admin, pod))
	})
	wait.Until(t, func(ctx context.Context) error {
		var list fairleadv1alpha1.MeshServingReportList
		if err := admin.List(ctx, &list); err != nil {
			return err
		}
		for _, report := range list.Items {
			if slices.ContainsFunc(report.Proxies, func(p fairleadv1alpha1.ReportedProxy) bool { return p.ID == node }) {
				return nil
			}
		}
		return fmt.Errorf("no report lists %s", node)
	})
	var page string
	wait.Until(t, func(ctx context.Context) error {
		// As the PodMonitor has Prometheus do it.
		var scraper corev1.Secret
		if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "fairlead-scraper"}, &scraper); err != nil {
			return err
		}
		code, body, err := scrape(ctx, "https://"+process.address(t, "metrics"), string(scraper.Data[corev1.ServiceAccountTokenKey]))
		connected, refusals := fmt.Sprintf("fairlead_mesh_connected_proxies{mesh=%q} 1", shop), fmt.Sprintf("fairlead_mesh_refusals_total{mesh=%q}", shop)
		if err != nil || code != http.StatusOK || !strings.Contains(body, connected) || !strings.Contains(body, refusals) {
			return fmt.Errorf("status %d: %.200s: %w", code, body, err)
		}
		page = body
		return nil
	})
	harness.CompareMetrics(t, "serve-mesh", page)
	granted := permissionsOf(all.Rules)
	maps.Copy(granted, permissionsOf(own.Rules))
	wait.Until(t, func(context.Context) error {
		left := line.unused(granted)
		delete(left, permission{"delete", "meshservingreports.fairlead.dev"}) // which it does when it ends
		if len(left) > 0 {
			return fmt.Errorf("granted and not used yet: %q", sorted(left))
		}
		return nil
	})
	if code := process.stop(t); code != 0 {
		t.Errorf("the process ended with %d", code)
	}

	if denied := line.made(refused); len(denied) > 0 {
		t.Errorf("refused: %v", denied)
	}
	if diff := cmp.Diff(sorted(granted), sorted(line.used())); diff != "" {
		t.Errorf("granted and used differ (-granted +used):\n%s", diff)
	}
}

// podToken is a token of a pod's ServiceAccount, bound to the pod, for the xDS server.
func podToken(t testing.TB, admin client.Client, pod *corev1.Pod) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{"fairlead-mesh"}, ExpirationSeconds: ptr.To[int64](600),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "default"}}
	if err := admin.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// connectProxy opens a stream, which lasts until the test ends, and waits for the first answer.
func connectProxy(ctx context.Context, t testing.TB, address string, authority *callers.Authority, node, token string) error {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority.PEM)
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = connection.Close() })
	lasting := metadata.AppendToOutgoingContext(context.WithoutCancel(ctx), "authorization", "Bearer "+token)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(lasting)
	if err != nil {
		return err
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: resource.Cluster.URL()}); err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// servingCertificate is a directory with what a Secret of the chart holds, and who signed it.
func servingCertificate(t testing.TB, host string) (*callers.Authority, string) {
	t.Helper()
	authority, err := callers.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(time.Now().Add(time.Hour), host)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return authority, dir
}

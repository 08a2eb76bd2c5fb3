package e2e_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/cluster"
)

// installation is the chart in a cluster, without the pods that nobody here runs: the tests run the operator that
// they stand for, with the pods' arguments and the pods' identity.
type installation struct {
	client.Client
	config    *rest.Config
	namespace string
	release   release
	// cluster-wide and in the namespace.
	role          rbacv1.ClusterRole
	namespaceRole rbacv1.Role
}

func install(t testing.TB, c *cluster.Cluster) *installation {
	t.Helper()
	i := &installation{Client: administrator(t, c.Config()), config: c.Config(), namespace: c.Namespace(t)}
	r, err := renderChart("fairlead", i.namespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	i.release = r
	t.Cleanup(func() {
		for _, object := range r.Objects {
			_ = i.Delete(context.Background(), object)
		}
	})
	if err := r.Apply(t.Context(), i.Client); err != nil {
		t.Fatal(err)
	}
	r.find(t, "ClusterRole", ":fairlead", &i.role)
	r.find(t, "Role", "-leader-election", &i.namespaceRole)
	return i
}

// token of a ServiceAccount, as a pod of it would get one.
func (i *installation) token(t testing.TB, account string) string {
	t.Helper()
	token, err := i.release.Token(t.Context(), i.Client, account)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// start runs the operator as the chart's pods would, but bound to this machine.
func (i *installation) start(t testing.TB, kubeconfig string, extra ...string) *process {
	t.Helper()
	var deployment appsv1.Deployment
	i.release.find(t, "Deployment", "fairlead", &deployment)
	args := append(slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args),
		"--kubeconfig", kubeconfig,
		"--health-probe-bind-address=127.0.0.1:0",
		"--metrics-bind-address=127.0.0.1:0",
	)
	args = append(args, extra...)
	// An API server that cannot stream lists makes the operator list, so that permission must be there too.
	return startOperatorWith(t, environment(t, "KUBE_FEATURE_WatchListClient=false"), args)
}

// forget takes the cluster back to before anyone used Fairlead. The CRDs stay: an operator that lacks a permission for
// them is refused whether they are there or not, and an API server may take minutes over CRDs that come and go.
func (i *installation) forget(t testing.TB) {
	t.Helper()
	for _, kind := range []client.Object{&v1.Istio{}, &v1.IstioRevision{}} {
		err := i.DeleteAllOf(t.Context(), kind)
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "fairlead", Namespace: i.namespace}}
	if err := client.IgnoreNotFound(i.Delete(t.Context(), lease)); err != nil {
		t.Fatal(err)
	}
}

// story is all that an operator does: it installs its CRDs, takes the lead, makes a revision, reports, records events
// and answers who may see its metrics. It ends early when the operator is refused anything.
func (i *installation) story(t testing.TB) (*recorder, *process, error) {
	t.Helper()
	i.forget(t)
	line := startRecorder(t, i.config)
	operator := i.start(t, line.kubeconfigFor(t, i.token(t, "fairlead")))
	defer operator.stop(t)

	step := func(what string, try func(context.Context) error) error {
		err := attempt(t.Context(), 20*time.Second, func(ctx context.Context) error {
			if len(line.made(refused)) > 0 {
				return nil
			}
			return try(ctx)
		})
		if no := line.made(refused); len(no) > 0 {
			return fmt.Errorf("%s: the operator was refused: %v", what, no[0])
		}
		return err
	}
	istio := revisionBased(makeIstio("default", "v1.24.0"))
	metrics := operator.address(t, "metrics")
	scraper := i.token(t, "scraper")
	return line, operator, errors.Join(
		step("create an Istio", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(i.Create(ctx, istio))
		}),
		step("see its status", func(ctx context.Context) error {
			return isReported(ctx, i, istio.Name, "IstiodNotReady", istio)
		}),
		step("see its revision", func(ctx context.Context) error {
			return i.Get(ctx, client.ObjectKey{Name: "default-v1-24-0"}, &v1.IstioRevision{})
		}),
		step("see an event", func(ctx context.Context) error {
			return eventTold(ctx, i, istio, "RevisionCreated")
		}),
		// The second time that the same thing happens, it is not told by a new event but by a change of the first.
		step("see it told again", func(ctx context.Context) error {
			missing := eventRepeated(ctx, i, istio, "RevisionCreated")
			if missing == nil {
				return nil
			}
			revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-v1-24-0"}}
			return errors.Join(missing, client.IgnoreNotFound(i.Delete(ctx, revision)))
		}),
		step("scrape its metrics", func(ctx context.Context) error {
			code, body, err := scrape(ctx, "https://"+metrics, scraper)
			if err != nil || code != http.StatusOK || !strings.Contains(body, "fairlead_build_info") {
				return fmt.Errorf("status %d: %w", code, err)
			}
			return nil
		}),
	)
}

func eventRepeated(ctx context.Context, c client.Reader, istio *v1.Istio, reason string) error {
	var events eventsv1.EventList
	if err := c.List(ctx, &events, client.InNamespace("default")); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Regarding.UID == istio.UID && e.Reason == reason && e.Series != nil {
			return nil
		}
	}
	return fmt.Errorf("no event %s has become a series", reason)
}

// scrape reads metrics without checking the certificate, which the operator signs itself: it is the token that counts.
func scrape(ctx context.Context, server, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// allowScraper makes a ServiceAccount that the chart's role for scraping is bound to.
func (i *installation) allowScraper(t testing.TB) {
	t.Helper()
	create(t, i.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "scraper", Namespace: i.namespace}})
	create(t, i.Client, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: i.namespace + ":scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: i.namespace + ":fairlead-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "scraper", Namespace: i.namespace}},
	})
}

func permissionsOf(rules []rbacv1.PolicyRule) map[permission]bool {
	granted := map[permission]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name, subresource, _ := strings.Cut(resource, "/")
				full := schema.GroupResource{Group: group, Resource: name}.String()
				if subresource != "" {
					full += "/" + subresource
				}
				for _, verb := range rule.Verbs {
					granted[permission{verb, full}] = true
				}
			}
		}
	}
	return granted
}

// TestChartPermissions runs the operator as the chart's ServiceAccount and shows that its permissions are enough, that
// each of them is used, and that the lack of any rule does not go unnoticed.
func TestChartPermissions(t *testing.T) {
	// A cluster of its own, where the CRDs are not yet.
	i := install(t, cluster.Start(t, cluster.Options{Profile: "hub"}))
	i.allowScraper(t)

	t.Run("are enough, and all are used", func(t *testing.T) {
		line, _, err := i.story(t)
		if err != nil {
			t.Fatal(err)
		}
		used := map[permission]bool{}
		for _, c := range line.made(func(call) bool { return true }) {
			used[c.permission] = true
		}
		granted := permissionsOf(append(slices.Clone(i.role.Rules), i.namespaceRole.Rules...))
		if diff := cmp.Diff(sorted(granted), sorted(used)); diff != "" {
			t.Errorf("granted and used differ (-granted +used):\n%s", diff)
		}
	})

	without := func(rule rbacv1.PolicyRule, role client.Object) {
		name := strings.Join(rule.Resources, ",") + " " + strings.Join(rule.Verbs, ",")
		t.Run("fail without "+name, func(t *testing.T) {
			if err := i.Update(t.Context(), role); err != nil {
				t.Fatal(err)
			}
			_, operator, err := i.story(t)
			if err == nil {
				t.Fatal("nobody noticed")
			}
			lacking := permissionsOf([]rbacv1.PolicyRule{rule})
			if !slices.ContainsFunc(slices.Collect(maps.Keys(lacking)), func(p permission) bool {
				return strings.Contains(err.Error(), p.String())
			}) {
				t.Errorf("the wrong thing failed: %v", err)
			}
			if log := operator.lines.String(); !strings.Contains(log, "forbidden") {
				t.Errorf("the operator's log does not tell:\n%s", log)
			}
		})
	}
	for n, rule := range i.role.Rules {
		role := i.role.DeepCopy()
		role.Rules = slices.Delete(role.Rules, n, n+1)
		without(rule, role)
	}
	if err := i.Update(t.Context(), i.role.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	for n, rule := range i.namespaceRole.Rules {
		role := i.namespaceRole.DeepCopy()
		role.Rules = slices.Delete(role.Rules, n, n+1)
		without(rule, role)
	}
}

func sorted(permissions map[permission]bool) []string {
	var names []string
	for p := range permissions {
		names = append(names, p.String())
	}
	slices.Sort(names)
	return names
}

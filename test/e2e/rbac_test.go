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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/environmentd"
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
	// environmentds are those of all environments.
	environmentds *environmentd.Fleet
}

func install(t testing.TB, c *cluster.Cluster) *installation {
	t.Helper()
	i := &installation{
		Client: administrator(t, c.Config()), config: c.Config(), namespace: c.Namespace(t), environmentds: environmentd.Start(),
	}
	t.Cleanup(i.environmentds.Close)
	// What adoption may do is a role of its own, which would hide what the others lack.
	values := selfSigned()
	values["passages"] = []any{"revision", "rollout"}
	r, err := renderChart("fairlead", i.namespace, values)
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
		"--chart-dir", cluster.Charts(t),
		"--health-probe-bind-address=127.0.0.1:0",
		"--metrics-bind-address=127.0.0.1:0",
		"--webhook-bind-address=127.0.0.1:0",
		"--environmentd-url="+i.environmentds.URL(),
	)
	args = append(args, extra...)
	// An API server that cannot stream lists makes the operator list, so that permission must be there too.
	return startOperatorWith(t, environment(t, "KUBE_FEATURE_WatchListClient=false"), args)
}

// forget takes the cluster back to before anyone used Fairlead. The CRDs stay, for an API server may take minutes over
// CRDs that come and go, but one is not as it should be, and has to be written.
func (i *installation) forget(t testing.TB) {
	t.Helper()
	for _, kind := range []client.Object{&v1.Istio{}, &v1.IstioRevisionTag{}, &v1.IstioRevision{}} {
		err := i.DeleteAllOf(t.Context(), kind)
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	i.letGo(t)
	// Of what an operator that was refused has installed, the next one would have nothing left to do.
	records := client.MatchingLabels{"owner": "helm"}
	if err := i.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(i.namespace), records); err != nil {
		t.Fatal(err)
	}
	crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "istios.sailoperator.io"}}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	edited := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"names":{"categories":null}}}`))
	if err := client.IgnoreNotFound(i.Patch(t.Context(), crd, edited)); err != nil {
		t.Fatal(err)
	}
	i.storeEnvironment(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "fairlead", Namespace: i.namespace}}
	if err := client.IgnoreNotFound(i.Delete(t.Context(), lease)); err != nil {
		t.Fatal(err)
	}
}

// letGo ends what waits for an operator that was refused.
func (i *installation) letGo(t testing.TB) {
	t.Helper()
	unprotected := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	eventually(t, time.Minute, func(ctx context.Context) error {
		var left []error
		for _, kind := range []string{v1.IstioRevisionTagKind, v1.IstioRevisionKind} {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(v1.GroupVersion.WithKind(kind))
			if err := i.List(ctx, list); meta.IsNoMatchError(err) {
				continue
			} else if err != nil {
				return err
			}
			for n := range list.Items {
				item := &list.Items[n]
				left = append(left, fmt.Errorf("%s %s is still there", kind, item.Name), client.IgnoreNotFound(i.Patch(ctx, item, unprotected)))
			}
		}
		return errors.Join(left...)
	})
}

// everything makes the charts install one of each kind that they know.
var everything = v1.Values{
	"global":       map[string]any{"networkPolicy": map[string]any{"enabled": true}},
	"experimental": map[string]any{"stableValidationPolicy": true},
	"autoscaleMin": int64(2),
}

// story is all that an operator does: it installs its CRDs, takes the lead, installs a control plane and a tag, moves
// on to the next version, removes the old one, reports, records events and answers who may see its metrics. It ends
// early when the operator is refused anything.
func (i *installation) story(t testing.TB) (*recorder, error) {
	t.Helper()
	i.forget(t)
	line := startRecorder(t, i.config)
	operator := i.start(t, line.kubeconfigFor(t, i.token(t, "fairlead")))
	defer operator.stop(t)

	step := func(what string, try func(context.Context) error) error {
		began := time.Now()
		defer func() { t.Logf("%s: %.1fs", what, time.Since(began).Seconds()) }()
		err := attempt(t.Context(), 2*time.Minute, func(ctx context.Context) error {
			if len(line.made(refused)) > 0 {
				return nil
			}
			return try(ctx)
		})
		if no := line.made(refused); len(no) > 0 {
			told := attempt(t.Context(), 10*time.Second, func(context.Context) error {
				if !strings.Contains(operator.lines.String(), "forbidden") {
					return errors.New("the operator's log does not tell")
				}
				return nil
			})
			return errors.Join(fmt.Errorf("%s: the operator was refused: %v", what, no[0]), told)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	istio := revisionBased(makeIstio("default", "v1.31.0"))
	istio.Spec.Namespace = i.namespace
	istio.Spec.Values = everything
	istio.Spec.UpdateStrategy.InactiveRevisionDeletionGracePeriodSeconds = ptr.To[int64](0)
	istio.Spec.UpdateStrategy.WorkloadMigration = &v1.WorkloadMigrationConfig{Strategy: v1.WorkloadMigrationStrategyBatched}
	user := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.namespace + "-user"}}
	tag := &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	tag.Spec.TargetRef = v1.TargetReference{Kind: v1.IstioKind, Name: istio.Name}
	metrics := operator.address(t, "metrics")
	scraper := i.token(t, "scraper")
	for _, told := range []error{
		step("create an Istio", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(i.Create(ctx, istio))
		}),
		step("see its control plane run", func(ctx context.Context) error {
			return i.serve(ctx, "default-v1-31-0", istio)
		}),
		step("create a tag", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(i.Create(ctx, tag))
		}),
		step("see where it points", func(ctx context.Context) error { return i.points(ctx, "default", "default-v1-31-0") }),
		step("install control planes that run elsewhere", i.installElsewhere),
		step("upgrade one of them", i.upgradeElsewhere),
		step("remove them", i.removeElsewhere),
		step("use it", func(ctx context.Context) error {
			_, err := controllerutil.CreateOrPatch(ctx, i.Client, user, func() error {
				user.Labels = map[string]string{v1.LabelRevision: "default-v1-31-0"}
				return nil
			})
			return err
		}),
		step("ask for another version", func(ctx context.Context) error {
			istio.Spec.Version = "v1.31.1"
			return i.Patch(ctx, istio, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"version":"v1.31.1"}}`)))
		}),
		step("see the new control plane run", func(ctx context.Context) error {
			return i.serve(ctx, "default-v1-31-1", istio)
		}),
		step("see the tag move", func(ctx context.Context) error { return i.points(ctx, "default", "default-v1-31-1") }),
		step("see its user move", func(ctx context.Context) error {
			if err := i.Get(ctx, client.ObjectKeyFromObject(user), user); err != nil {
				return err
			}
			if uses := user.Labels[v1.LabelRevision]; uses != "default-v1-31-1" {
				return fmt.Errorf("namespace %s uses %s", user.Name, uses)
			}
			return nil
		}),
		step("see the old revision go", func(ctx context.Context) error {
			return isGone(ctx, i, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-v1-31-0"}})
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
			revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-v1-31-1"}}
			return errors.Join(missing, client.IgnoreNotFound(i.Delete(ctx, revision)))
		}),
		step("see an environment stored in the newer version", i.storedAnew),
		step("see its first generation serve", func(ctx context.Context) error { return i.rolledOut(ctx, 1) }),
		step("ask for another image", i.rollOn),
		step("see the second generation serve", func(ctx context.Context) error { return i.rolledOut(ctx, 2) }),
		step("see the certificate of the first go", i.noCertificate),
		step("remove all", func(ctx context.Context) error {
			err := errors.Join(client.IgnoreNotFound(i.Delete(ctx, tag)), client.IgnoreNotFound(i.Delete(ctx, istio)),
				isGone(ctx, i, tag), isGone(ctx, i, istio))
			if err != nil {
				return err
			}
			// As the garbage collector would, which takes half a minute to hear of a new kind.
			revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-v1-31-1"}}
			return errors.Join(client.IgnoreNotFound(i.Delete(ctx, revision)), isGone(ctx, i, revision))
		}),
		step("scrape its metrics", func(ctx context.Context) error {
			code, body, err := scrape(ctx, "https://"+metrics, scraper)
			if err != nil || code != http.StatusOK || !strings.Contains(body, "fairlead_build_info") {
				return fmt.Errorf("status %d: %w", code, err)
			}
			return nil
		}),
	} {
		if told != nil {
			return line, told
		}
	}
	return line, nil
}

// serve says of istiod what nobody else would here, where nothing runs, and waits until the Istio is healthy with it.
func (i *installation) serve(ctx context.Context, revision string, istio *v1.Istio) error {
	var d appsv1.Deployment
	if err := i.Get(ctx, client.ObjectKey{Namespace: i.namespace, Name: "istiod-" + revision}, &d); err != nil {
		return err
	}
	if d.Status.ObservedGeneration != d.Generation {
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		}
		if err := i.Status().Update(ctx, &d); err != nil {
			return err
		}
	}
	return isReported(ctx, i, istio.Name, v1.StateHealthy, istio)
}

func (i *installation) points(ctx context.Context, tag, revision string) error {
	var found v1.IstioRevisionTag
	if err := i.Get(ctx, client.ObjectKey{Name: tag}, &found); err != nil {
		return err
	}
	if found.Status.IstioRevision != revision {
		return fmt.Errorf("tag %s points to %q: %+v", tag, found.Status.IstioRevision, found.Status.Conditions)
	}
	return nil
}

func isGone(ctx context.Context, c client.Reader, object client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("%s is still there", object.GetName()))
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

// someRules is every which rule is taken away in a test that has to be quick.
const someRules = 6

// TestChartPermissions runs the operator as the chart's ServiceAccount and shows that its permissions are enough, that
// each of them is used, and that the lack of any rule does not go unnoticed: of some rules, with FAIRLEAD_TESTS=full of each.
func TestChartPermissions(t *testing.T) {
	t.Parallel()
	// A cluster of its own, where the CRDs are not yet.
	i := install(t, cluster.Start(t, cluster.Options{Profile: "hub"}))
	i.allowScraper(t)

	t.Run("are enough, and all are used", func(t *testing.T) {
		line, err := i.story(t)
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

	var istiod rbacv1.ClusterRole
	i.release.find(t, "ClusterRole", ":fairlead-istiod", &istiod)
	held := permissionsOf(istiod.Rules)
	without := func(rule rbacv1.PolicyRule, role client.Object) {
		lacking := permissionsOf([]rbacv1.PolicyRule{rule})
		maps.DeleteFunc(lacking, func(p permission, _ bool) bool { return held[p] })
		if len(lacking) == 0 {
			return // what istiod is granted is enough
		}
		name := strings.Join(rule.Resources, ",") + " " + strings.Join(rule.Verbs, ",")
		t.Run("fail without "+name, func(t *testing.T) {
			if err := i.Update(t.Context(), role); err != nil {
				t.Fatal(err)
			}
			_, err := i.story(t)
			if err == nil {
				t.Fatal("nobody noticed")
			}
			if !slices.ContainsFunc(slices.Collect(maps.Keys(lacking)), func(p permission) bool {
				return strings.Contains(err.Error(), p.String())
			}) {
				t.Errorf("the wrong thing failed: %v", err)
			}
			if strings.Contains(err.Error(), "does not tell") {
				t.Error(err)
			}
		})
	}
	t.Run("fail without what istiod is granted", func(t *testing.T) {
		less := istiod.DeepCopy()
		less.Rules = slices.DeleteFunc(less.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, "gateway.networking.k8s.io") })
		if err := i.Update(t.Context(), less); err != nil {
			t.Fatal(err)
		}
		_, err := i.story(t)
		if err == nil || !strings.Contains(err.Error(), "clusterroles.rbac.authorization.k8s.io") {
			t.Errorf("the wrong thing failed: %v", err)
		}
		if err := i.Update(t.Context(), istiod.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	})
	for n, rule := range i.role.Rules {
		if n%someRules != 0 && !faults.Full() {
			continue
		}
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

package operator_test

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
	authorizationv1 "k8s.io/api/authorization/v1"
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
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
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
	i.awaitAuthorization(t, i.role.Rules[0], nil, true)
	i.awaitAuthorization(t, i.namespaceRole.Rules[0], nil, true)
	return i
}

// awaitAuthorization waits until the API server allows the operator's ServiceAccount what a rule grants, or no longer does:
// it takes a moment to hear of a changed role. Permissions that another role grants as well say nothing, and are left out.
func (i *installation) awaitAuthorization(t testing.TB, rule rbacv1.PolicyRule, besides map[permission]bool, allowed bool) {
	t.Helper()
	review := func(ctx context.Context, group, resource, verb string) (bool, error) {
		name, subresource, _ := strings.Cut(resource, "/")
		asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + i.namespace + ":fairlead",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: i.namespace, Verb: verb, Group: group, Resource: name, Subresource: subresource,
			},
		}}
		if len(rule.ResourceNames) > 0 {
			asked.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
		}
		err := i.Create(ctx, asked)
		return asked.Status.Allowed, err
	}
	wait.Until(t, func(ctx context.Context) error {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if besides[permissionOn(group, resource, verb)] {
						continue
					}
					if got, err := review(ctx, group, resource, verb); err != nil || got != allowed {
						return fmt.Errorf("%s %s is allowed: %t, want %t: %w", verb, resource, got, allowed, err)
					}
				}
			}
		}
		return nil
	})
}

// token of a ServiceAccount, as a pod of it would get one.
func (i *installation) token(t testing.TB, account string) string {
	t.Helper()
	var token string
	wait.Until(t, func(ctx context.Context) (err error) {
		token, err = i.release.Token(ctx, i.Client, account) // the namespace may not have its default one yet
		return err
	})
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
		longLease(),
	)
	args = append(args, extra...)
	// An API server that cannot stream lists makes the operator list, so that permission must be there too.
	return startOperatorWith(t, harness.Environment(t.TempDir(), "KUBE_FEATURE_WatchListClient=false"), args)
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
	wait.Until(t, func(ctx context.Context) error {
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

// story is all that an operator does: it installs its CRDs, takes the lead, installs a control plane and its tag, moves
// on to the next version, removes the old one, reports, records events and answers who may see its metrics. It ends
// early when the operator is refused anything.
func (i *installation) story(t testing.TB) (*recorder, error) {
	t.Helper()
	i.forget(t)
	line := startRecorder(t, i.config)
	operator := i.start(t, line.kubeconfigFor(t, i.token(t, "fairlead")))
	defer operator.stop(t)

	istio := revisionBased(makeIstio("default", "v1.31.0"))
	istio.Spec.Namespace = i.namespace
	istio.Spec.Values = everything
	istio.Spec.UpdateStrategy.InactiveRevisionDeletionGracePeriodSeconds = ptr.To[int64](0)
	istio.Spec.UpdateStrategy.WorkloadMigration = &v1.WorkloadMigrationConfig{
		Strategy: v1.WorkloadMigrationStrategyBatched,
		Batched:  &v1.BatchedMigrationConfig{WorkloadKinds: []v1.WorkloadKind{v1.WorkloadKindDeployment, v1.WorkloadKindDaemonSet}},
	}
	nowhere := makeIstio("nowhere", "v1.31.0")
	nowhere.Spec.Namespace = i.namespace + "-missing"
	user := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.namespace + "-user"}}
	agent := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: user.Name, Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}},
			},
		},
	}
	tag := &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	asksForTag := func(asks bool) func(context.Context) error {
		return func(ctx context.Context) error {
			patch := fmt.Appendf(nil, `{"spec":{"updateStrategy":{"defaultTag":%t}}}`, asks)
			return i.Patch(ctx, istio, client.RawPatch(types.MergePatchType, patch))
		}
	}
	metrics := operator.address(t, "metrics")
	scraped := func(token string, want int) func(context.Context) error {
		return func(ctx context.Context) error {
			code, body, err := scrape(ctx, "https://"+metrics, token)
			if err != nil || code != want || strings.Contains(body, "fairlead_build_info") != (want == http.StatusOK) {
				return fmt.Errorf("status %d: %.200s: %w", code, body, err)
			}
			return nil
		}
	}
	scraper := i.token(t, "scraper")
	for _, step := range []storyStep{
		{"create an Istio", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(i.Create(ctx, istio))
		}},
		{"see its control plane run", func(ctx context.Context) error {
			return i.serve(ctx, "default-v1-31-0", istio)
		}},
		{"ask for a tag", asksForTag(true)},
		{"see where it points", func(ctx context.Context) error { return i.points(ctx, "default", "default-v1-31-0") }},
		{"install control planes that run elsewhere", i.installRemoteRevisions},
		{"upgrade one of them", i.upgradeRemoteRevision},
		{"remove them", i.removeRemoteRevisions},
		{"use it", func(ctx context.Context) error {
			_, err := controllerutil.CreateOrPatch(ctx, i.Client, user, func() error {
				user.Labels = map[string]string{v1.LabelRevision: "default-v1-31-0"}
				return nil
			})
			if err != nil {
				return err
			}
			_, err = controllerutil.CreateOrPatch(ctx, i.Client, agent, func() error {
				agent.Spec.Template.Labels[v1.LabelRevision] = "default-v1-31-0"
				return nil
			})
			return err
		}},
		{"ask for another version", func(ctx context.Context) error {
			istio.Spec.Version = "v1.31.1"
			return i.Patch(ctx, istio, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"version":"v1.31.1"}}`)))
		}},
		{"see the new control plane run", func(ctx context.Context) error {
			return i.serve(ctx, "default-v1-31-1", istio)
		}},
		{"see the tag move", func(ctx context.Context) error { return i.points(ctx, "default", "default-v1-31-1") }},
		{"let it inject", func(ctx context.Context) error { return i.inject(ctx, "default-v1-31-1") }},
		{"see its user move", func(ctx context.Context) error {
			if err := i.Get(ctx, client.ObjectKeyFromObject(user), user); err != nil {
				return err
			}
			if uses := user.Labels[v1.LabelRevision]; uses != "default-v1-31-1" {
				return fmt.Errorf("namespace %s uses %s", user.Name, uses)
			}
			if err := i.Get(ctx, client.ObjectKeyFromObject(agent), agent); err != nil {
				return err
			}
			if uses := agent.Spec.Template.Labels[v1.LabelRevision]; uses != "default-v1-31-1" {
				return fmt.Errorf("DaemonSet %s uses %s", agent.Name, uses)
			}
			return nil
		}},
		{"see the old revision go", func(ctx context.Context) error {
			return isGone(ctx, i, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-v1-31-0"}})
		}},
		{"see an event", func(ctx context.Context) error {
			return eventReported(ctx, i, istio, "RevisionCreated")
		}},
		{"create an Istio in a namespace that does not exist", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(i.Create(ctx, nowhere))
		}},
		// The second time that the same thing happens, it is not told by a new event but by a change of the first.
		{"see the event of its revision told again", func(ctx context.Context) error {
			missing := eventRepeated(ctx, i, nowhere, "RevisionCreated")
			if missing == nil {
				return nil
			}
			revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: nowhere.Name}}
			return errors.Join(missing, client.IgnoreNotFound(i.Delete(ctx, revision)))
		}},
		{"see an environment stored in the newer version", i.storedAnew},
		{"see its first generation serve", func(ctx context.Context) error { return i.rolledOut(ctx, 1) }},
		{"ask for another image", i.rollOn},
		{"see the second generation serve", func(ctx context.Context) error { return i.rolledOut(ctx, 2) }},
		{"see the certificate of the first go", i.noCertificate},
		{"ask for no tag", asksForTag(false)},
		{"see it go", func(ctx context.Context) error { return isGone(ctx, i, tag) }},
		{"remove all", func(ctx context.Context) error {
			err := errors.Join(client.IgnoreNotFound(i.Delete(ctx, istio)), isGone(ctx, i, istio))
			if err != nil {
				return err
			}
			// As the garbage collector would, which takes half a minute to hear of a new kind.
			revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-v1-31-1"}}
			return errors.Join(client.IgnoreNotFound(i.Delete(ctx, revision)), isGone(ctx, i, revision))
		}},
		{"scrape its metrics with a token that may", scraped(scraper, http.StatusOK)},
		{"scrape them with another token", scraped(i.token(t, "default"), http.StatusForbidden)},
		{"scrape them without a token", scraped("", http.StatusUnauthorized)},
	} {
		if err := step.take(t, operator, line); err != nil {
			return line, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return line, nil
}

// storyStep is one of a story, tried until it works.
type storyStep struct {
	what string
	try  func(context.Context) error
}

// take ends early when the operator has ended, or was refused anything, of which its log must tell.
func (s storyStep) take(t testing.TB, operator *process, line *recorder) error {
	t.Helper()
	began := time.Now()
	defer func() { t.Logf("%s: %.1fs", s.what, time.Since(began).Seconds()) }()
	var ended bool
	err := wait.Try(t.Context(), func(ctx context.Context) error {
		if ended = operator.hasEnded(); ended || len(line.made(refused)) > 0 {
			return nil
		}
		return s.try(ctx)
	})
	if no := line.made(refused); len(no) > 0 {
		reported := wait.Try(t.Context(), func(context.Context) error {
			if !strings.Contains(operator.Log.Since(0), "forbidden") {
				return errors.New("the operator's log does not tell")
			}
			return nil
		})
		return errors.Join(fmt.Errorf("the operator was refused: %v", no[0]), reported)
	}
	if ended {
		return fmt.Errorf("the operator ended with %d", operator.ExitCode())
	}
	return err
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

// permissionOn is one of a rule, whose resource may be a subresource.
func permissionOn(group, resource, verb string) permission {
	name, subresource, _ := strings.Cut(resource, "/")
	full := schema.GroupResource{Group: group, Resource: name}.String()
	if subresource != "" {
		full += "/" + subresource
	}
	return permission{verb, full}
}

func permissionsOf(rules []rbacv1.PolicyRule) map[permission]bool {
	granted := map[permission]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[permissionOn(group, resource, verb)] = true
				}
			}
		}
	}
	return granted
}

// TestStoryChartPermissions runs the operator as the chart's ServiceAccount and shows that its permissions are enough, and
// that each of them is used.
func TestStoryChartPermissions(t *testing.T) {
	t.Parallel()
	i := install(t, storyCluster(t))
	i.allowScraper(t)
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
}

// someRules is every which rule is taken away, unless it is full.
const someRules = 12

// lackingPermissions shows that the lack of any rule does not go unnoticed: of some rules, in full of each.
func lackingPermissions(t *testing.T, c *cluster.Cluster) {
	i := install(t, c)
	i.allowScraper(t)
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
			i.awaitAuthorization(t, rule, held, false)
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
		less, taken := istiod.DeepCopy(), rbacv1.PolicyRule{}
		less.Rules = slices.DeleteFunc(less.Rules, func(r rbacv1.PolicyRule) bool {
			found := slices.Contains(r.APIGroups, "gateway.networking.k8s.io")
			if found {
				taken = r
			}
			return found
		})
		if err := i.Update(t.Context(), less); err != nil {
			t.Fatal(err)
		}
		i.awaitAuthorization(t, taken, permissionsOf(less.Rules), false)
		_, err := i.story(t)
		if err == nil || !strings.Contains(err.Error(), "clusterroles.rbac.authorization.k8s.io") {
			t.Errorf("the wrong thing failed: %v", err)
		}
		if err := i.Update(t.Context(), istiod.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		i.awaitAuthorization(t, taken, nil, true)
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
	for _, rule := range i.role.Rules {
		i.awaitAuthorization(t, rule, nil, true)
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

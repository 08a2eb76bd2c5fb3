package operator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/meshservice"
	"github.com/fairlead/fairlead/internal/revision"
	"github.com/fairlead/fairlead/internal/rollout"
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
	// passages that run.
	passages []string
	// cluster-wide, but for what istiod is granted, and in the namespace.
	roles []rbacv1.ClusterRole
	// namespaceRoles are in the namespaces that they are about.
	namespaceRoles []rbacv1.Role
	// environmentds are those of all environments.
	environmentds *environmentd.Fleet
	// hub is the cluster, and member the one that it manages, where that passage runs.
	hub, member *cluster.Cluster
	// described is how many clusters were described by hand.
	described int
}

func install(t testing.TB, c *cluster.Cluster, passages ...string) *installation {
	t.Helper()
	i := &installation{
		Client: administrator(t, c.Config()), config: c.Config(), namespace: c.Namespace(t), passages: passages, environmentds: environmentd.Start(), hub: c,
	}
	t.Cleanup(i.environmentds.Close)
	if i.runs(model.Passage) {
		i.member = memberCluster(t, c)
	}
	var run []any
	for _, passage := range passages {
		run = append(run, passage)
	}
	r, err := renderChart("fairlead", i.namespace, map[string]any{"passages": run})
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
	i.roles = make([]rbacv1.ClusterRole, 1+len(passages))
	r.find(t, "ClusterRole", ":fairlead", &i.roles[0])
	for n, passage := range passages {
		r.find(t, "ClusterRole", ":fairlead-"+passage, &i.roles[1+n])
	}
	i.namespaceRoles = r.roles(t)
	bound := slices.Clone(i.roles)
	if i.runs(revision.Name) {
		var istiod rbacv1.ClusterRole
		r.find(t, "ClusterRole", ":fairlead-istiod", &istiod)
		bound = append(bound, istiod)
	}
	for _, role := range bound {
		for _, rule := range role.Rules {
			i.awaitAuthorization(t, i.namespace, rule, nil, true)
		}
	}
	for _, role := range i.namespaceRoles {
		for _, rule := range role.Rules {
			i.awaitAuthorization(t, role.Namespace, rule, nil, true)
		}
	}
	return i
}

// awaitAuthorization waits until the API server allows the operator's ServiceAccount what a rule grants, or no longer does:
// it takes a moment to hear of a changed role. Permissions that another role grants as well say nothing, and are left out.
func (i *installation) awaitAuthorization(t testing.TB, namespace string, rule rbacv1.PolicyRule, besides map[permission]bool, allowed bool) {
	t.Helper()
	review := func(ctx context.Context, group, resource, verb string) (bool, error) {
		name, subresource, _ := strings.Cut(resource, "/")
		asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + i.namespace + ":fairlead",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: group, Resource: name, Subresource: subresource,
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
		"--mesh-zone=east", "--mesh-bind-address=127.0.0.1:0", "--mesh-insecure", "--mesh-switch-timeout=1s", "--mesh-service-grace=1s",
		harness.LongLease(),
	)
	args = append(args, extra...)
	// An API server that cannot stream lists makes the operator list, so that permission must be there too.
	return startOperatorWith(t, harness.Environment(t.TempDir(), "KUBE_FEATURE_WatchListClient=false"), args)
}

// forget takes the cluster back to before anyone used Fairlead. The CRDs stay, for an API server may take minutes over
// CRDs that come and go, but one is not as it should be, and has to be written.
func (i *installation) forget(t testing.TB) {
	t.Helper()
	if i.runs(revision.Name) {
		i.forgetControlPlanes(t)
	}
	if i.runs(rollout.Name) {
		i.storeEnvironment(t)
	}
	if i.runs(model.Passage) {
		i.forgetMember(t)
	}
	if i.runs(meshservice.Name) {
		i.forgetMesh(t)
	}
	edited := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"names":{"categories":null}}}`))
	for _, name := range []string{"istios.sailoperator.io", environments, "propagationpolicies.policy.karmada.io", "meshes.kuma.io"} {
		crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if err := client.IgnoreNotFound(i.Patch(t.Context(), crd, edited)); err != nil {
			t.Fatal(err)
		}
	}
	leases := []*coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Name: "fairlead", Namespace: i.namespace}}}
	for _, passage := range i.passages {
		leases = append(leases, leaseOfPassage(passage))
	}
	for _, lease := range leases {
		if err := client.IgnoreNotFound(i.Delete(t.Context(), lease)); err != nil {
			t.Fatal(err)
		}
	}
}

func (i *installation) runs(passage string) bool { return slices.Contains(i.passages, passage) }

func (i *installation) forgetControlPlanes(t testing.TB) {
	t.Helper()
	for _, kind := range []client.Object{&v1.Istio{}, &v1.IstioRevisionTag{}, &v1.IstioRevision{}} {
		err := i.DeleteAllOf(t.Context(), kind)
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	i.letGo(t)
	i.storedBefore(t, tags, "v1alpha1", "v1")
	// Of what an operator that was refused has installed, the next one would have nothing left to do.
	records := client.MatchingLabels{"owner": "helm"}
	if err := i.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(i.namespace), records); err != nil {
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

// unusedInStory is granted to a passage, and needed where the story does not lead.
var unusedInStory = map[string]map[string]bool{
	revision.Name: setOf(
		// The finalizers of another controller, which it has left.
		"patch istios.sailoperator.io",
	),
	model.Passage: setOf(
		// What has the name of an object that should be created is read.
		"get resourcebindings.work.karmada.io", "get clusterresourcebindings.work.karmada.io", "get works.work.karmada.io",
		// A token that is near its end; an original that a second takeover replaces.
		"update secrets",
		// The finalizers of another controller, which it has left.
		"patch propagationpolicies.policy.karmada.io", "patch clusterpropagationpolicies.policy.karmada.io",
		// The second time that the same thing happens.
		"patch events.events.k8s.io",
	),
	meshservice.Name: setOf(
		// A Mesh whose status has changed since it was read.
		"get meshes.kuma.io",
		// Consumers that are gone for good.
		"delete meshconsumerslices.fairlead.dev",
		// What older versions called them.
		"list meshconsumerslices.kuma.io", "delete meshconsumerslices.kuma.io",
		// What another controller has generated, when its passage is taken over.
		"patch dataplanes.kuma.io", "patch meshservices.kuma.io",
		// Proxies that other processes serve.
		"list meshservingreports.fairlead.dev", "watch meshservingreports.fairlead.dev", "delete meshservingreports.fairlead.dev",
		// The second time that the same thing happens.
		"patch events.events.k8s.io",
	),
	rollout.Name: setOf(
		// In a cluster where nobody has stored an environment before.
		"create customresourcedefinitions.apiextensions.k8s.io",
		// What environmentd is granted.
		"list pods", "watch pods", "list secrets", "watch secrets", "update secrets", "delete secrets",
		// What has the name of an object that should be created is read; what a spec no longer asks for is deleted.
		"get deployments.apps", "get roles.rbac.authorization.k8s.io", "get rolebindings.rbac.authorization.k8s.io", "get serviceaccounts",
		"delete deployments.apps", "delete roles.rbac.authorization.k8s.io", "delete rolebindings.rbac.authorization.k8s.io", "delete serviceaccounts",
		// The second time that the same thing happens.
		"patch events.events.k8s.io",
	),
}

func setOf(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// TestStoryChartPermissions runs the operator as the chart's ServiceAccount and shows that its permissions are enough for each
// passage alone, and that each of them is used.
func TestStoryChartPermissions(t *testing.T) {
	t.Parallel()
	// No other operator may do what these are to do.
	c := cluster.Start(t, cluster.Options{Profile: "hub", KeepNamespaces: true})
	for _, passage := range []string{revision.Name, model.Passage, rollout.Name, meshservice.Name} {
		t.Run(passage, func(t *testing.T) {
			i := install(t, c, passage)
			i.allowScraper(t)
			granted := map[permission]bool{}
			for _, role := range i.namespaceRoles {
				maps.Copy(granted, permissionsOf(role.Rules))
			}
			for _, role := range i.roles {
				maps.Copy(granted, permissionsOf(role.Rules))
			}
			// The story would not miss these.
			lacking := maps.Clone(unusedInStory[passage])
			for p := range granted {
				delete(lacking, p.String())
			}
			if len(lacking) > 0 {
				t.Errorf("needed where the story does not lead, and not granted: %q", slices.Sorted(maps.Keys(lacking)))
			}
			needed := maps.Clone(granted)
			maps.DeleteFunc(needed, func(p permission, _ bool) bool { return unusedInStory[passage][p.String()] })
			line, err := i.story(t, needed)
			if err != nil {
				t.Fatal(err)
			}
			used := line.used()
			maps.DeleteFunc(used, func(p permission, _ bool) bool { return granted[p] })
			if len(used) > 0 {
				t.Errorf("used and not granted: %q", sorted(used))
			}
		})
	}
}

// someRules is every which rule is taken away, unless it is full.
const someRules = 12

// lackingPermissions shows that the lack of any rule does not go unnoticed: of some rules, in full of each.
func lackingPermissions(t *testing.T, c *cluster.Cluster) {
	for _, passage := range []string{revision.Name, model.Passage, rollout.Name, meshservice.Name} {
		t.Run(passage, func(t *testing.T) {
			i := install(t, c, passage)
			i.allowScraper(t)
			held := map[permission]bool{{"list", "pods"}: true, {"watch", "pods"}: true}
			if passage == revision.Name {
				held = i.lackingIstiod(t)
			}
			// An operator that cannot see other controllers goes on.
			for _, verb := range []string{"list", "watch"} {
				held[permission{verb, "leases.coordination.k8s.io"}], held[permission{verb, "deployments.apps"}] = true, true
			}
			n := 0
			for _, complete := range i.roles {
				for at, rule := range complete.Rules {
					if n++; n%someRules != 1 && !faults.Full() {
						continue
					}
					role := complete.DeepCopy()
					role.Rules = slices.Delete(role.Rules, at, at+1)
					i.lacking(t, rule, role, held)
				}
				if err := i.Update(t.Context(), complete.DeepCopy()); err != nil {
					t.Fatal(err)
				}
				for _, rule := range complete.Rules {
					i.awaitAuthorization(t, complete.Namespace, rule, nil, true)
				}
			}
			// What the operator may do in all namespaces, it may do in one.
			for _, role := range i.roles {
				for _, rule := range role.Rules {
					if len(rule.ResourceNames) == 0 {
						maps.Copy(held, permissionsOf([]rbacv1.PolicyRule{rule}))
					}
				}
			}
			for _, complete := range i.namespaceRoles {
				for at, rule := range complete.Rules {
					role := complete.DeepCopy()
					role.Rules = slices.Delete(role.Rules, at, at+1)
					i.lacking(t, rule, role, held)
				}
				if err := i.Update(t.Context(), complete.DeepCopy()); err != nil {
					t.Fatal(err)
				}
				for _, rule := range complete.Rules {
					i.awaitAuthorization(t, complete.Namespace, rule, nil, true)
				}
			}
		})
	}
}

// lacking takes a rule away, but for what is held besides.
func (i *installation) lacking(t *testing.T, rule rbacv1.PolicyRule, role client.Object, held map[permission]bool) {
	t.Helper()
	lacking := permissionsOf([]rbacv1.PolicyRule{rule})
	maps.DeleteFunc(lacking, func(p permission, _ bool) bool { return held[p] || unusedInStory[i.passages[0]][p.String()] })
	if len(lacking) == 0 {
		return // what istiod is granted is enough, or the story does not need it
	}
	name := strings.Join(rule.Resources, ",") + " " + strings.Join(rule.Verbs, ",")
	t.Run("fail without "+name, func(t *testing.T) {
		if err := i.Update(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		// A ClusterRole is asked about for all namespaces: in that of the release, a Role grants some of it too.
		i.awaitAuthorization(t, role.GetNamespace(), rule, held, false)
		// Some are asked for by no step of the story, and perhaps after the last.
		_, err := i.story(t, lacking)
		if err == nil || !strings.Contains(err.Error(), "the operator was refused") {
			t.Fatalf("nobody noticed: %v", err)
		}
		refused := slices.Collect(maps.Keys(lacking))
		if i.passages[0] == rollout.Name && slices.Contains(rule.Resources, "secrets") {
			// Kubernetes lets nobody write a Role with permissions that they lack, and the Role of environmentd has these: writing it
			// may be refused first.
			refused = append(refused, permission{"patch", "roles.rbac.authorization.k8s.io"})
		}
		if !slices.ContainsFunc(refused, func(p permission) bool { return strings.Contains(err.Error(), p.String()) }) {
			t.Errorf("the wrong thing failed: %v", err)
		}
		if strings.Contains(err.Error(), "does not tell") {
			t.Error(err)
		}
	})
}

// lackingIstiod takes away what istiod is granted, and returns what that is.
func (i *installation) lackingIstiod(t *testing.T) map[permission]bool {
	t.Helper()
	var istiod rbacv1.ClusterRole
	i.release.find(t, "ClusterRole", ":fairlead-istiod", &istiod)
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
		i.awaitAuthorization(t, i.namespace, taken, permissionsOf(less.Rules), false)
		_, err := i.story(t, nil)
		if err == nil || !strings.Contains(err.Error(), "clusterroles.rbac.authorization.k8s.io") {
			t.Errorf("the wrong thing failed: %v", err)
		}
		if err := i.Update(t.Context(), istiod.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		i.awaitAuthorization(t, i.namespace, taken, nil, true)
	})
	return permissionsOf(istiod.Rules)
}

func sorted(permissions map[permission]bool) []string {
	var names []string
	for p := range permissions {
		names = append(names, p.String())
	}
	slices.Sort(names)
	return names
}

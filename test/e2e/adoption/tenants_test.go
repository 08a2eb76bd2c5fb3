package adoption_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// tenant may edit Fairlead's kinds in the test's namespace of the hub, and besides do what the rules say.
func (s *stage) tenant(t testing.TB, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	user := "alice-" + s.namespace
	s.create(t, s.hub, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "besides"}, Rules: rules})
	for _, role := range []rbacv1.RoleRef{{Kind: "ClusterRole", Name: "fairlead-system:fairlead-edit"}, {Kind: "Role", Name: "besides"}} {
		role.APIGroup = rbacv1.GroupName
		s.create(t, s.hub, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(role.Name, ":", "-")}, RoleRef: role,
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})
	}
	config := s.hub.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: s.hub.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// claimed is a binding as the operator writes them, of a resource of any namespace.
func (s *stage) claimed(name, kind, namespace, resource string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace, Name: name,
		Annotations: map[string]string{"propagationpolicy.karmada.io/namespace": s.namespace, "propagationpolicy.karmada.io/name": "everything"},
	}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: resource}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: member2}}
	return b
}

// Who edits a namespace of the hub propagates what is in it, and gets at nothing else: not with a binding that names another
// namespace, for which the operator would read, and not by writing bindings or Works at all.
func TestStoryTenant(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const secrets = "karmada-cluster"

	t.Run("bindings of other namespaces are refused by the operator", func(t *testing.T) {
		for name, kind := range map[string]string{"token": "Secret", "role": "ClusterRole"} {
			b := s.claimed(name, kind, secrets, member1)
			says := "spec.resource.namespace must be the namespace of the binding, " + s.namespace
			if kind == "ClusterRole" {
				b.Spec.Resource.APIVersion, b.Spec.Resource.Namespace, b.Spec.Resource.Name = "rbac.authorization.k8s.io/v1", s.namespace, "cluster-admin"
				says = "the resource is cluster-scoped"
				s.mayRead(t, "clusterroles")
			}
			s.create(t, s.hub, b)
			s.says(t, name, "ResourceRefused", "spec.resource of ResourceBinding "+s.namespace+"/"+name+" names "+kind, says, "delete the binding")
			if w, err := s.work(t.Context(), member2, name); err == nil {
				t.Errorf("Work %s is made of it", w.Name)
			}
		}
	})

	t.Run("a second binding does not take the Work of the first", func(t *testing.T) {
		s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap", everywhere))
		s.says(t, "it-configmap", applied)
		s.create(t, s.hub, s.claimed("second", "ConfigMap", s.namespace, "it"))
		s.says(t, "second", "ResourceRefused", "whose Work for cluster member2 belongs to ResourceBinding "+s.namespace+"/it-configmap")
		if _, err := s.work(t.Context(), member2, "it-configmap"); err != nil {
			t.Error(err)
		}
	})

	alice := s.tenant(t,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"work.karmada.io"}, Resources: []string{"resourcebindings", "resourcebindings/status"}, Verbs: []string{"*"}})
	t.Run("a tenant writes policies", func(t *testing.T) {
		p := policy("v1", "Secret")
		p.Name, p.Namespace = "secrets", s.namespace
		// The API server reads roles from caches.
		wait.Until(t, func(ctx context.Context) error { return client.IgnoreAlreadyExists(alice.Create(ctx, p.DeepCopy())) })
		wait.Until(t, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(alice.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "it"}}))
		})
		s.says(t, "it-secret", applied)
		p = policy("v1", "Secret")
		p.Namespace = secrets
		if err := alice.Create(t.Context(), p); !apierrors.IsForbidden(err) {
			t.Errorf("in another namespace: %v", err)
		}
	})

	t.Run("a tenant who may write bindings is refused by the API server", func(t *testing.T) {
		b := &workv1alpha2.ResourceBinding{}
		key := client.ObjectKey{Namespace: s.namespace, Name: "it-configmap"}
		says := fmt.Sprintf("alice-%s may not %%s resourcebindings: Fairlead alone writes ResourceBindings, ClusterResourceBindings and Works", s.namespace)
		for verb, write := range map[string]func(context.Context) error{
			"create": func(ctx context.Context) error {
				return alice.Create(ctx, s.claimed("mine", "ConfigMap", s.namespace, "it"), client.DryRunAll)
			},
			"delete": func(ctx context.Context) error { return alice.Delete(ctx, b, client.DryRunAll) },
			"update": func(ctx context.Context) error {
				changed := b.DeepCopy()
				annotate(changed, "propagationpolicy.karmada.io/name", "another")
				return alice.Patch(ctx, changed, client.MergeFrom(b), client.DryRunAll)
			},
		} {
			// So it does admission policies.
			wait.Until(t, func(ctx context.Context) error {
				if err := alice.Get(ctx, key, b); err != nil {
					return err
				}
				if err := write(ctx); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf(says, verb)) {
					return fmt.Errorf("%s: %w", verb, err)
				}
				return nil
			})
		}
		changed := b.DeepCopy()
		changed.Status.ObservedGeneration = 77
		if err := alice.Status().Patch(t.Context(), changed, client.MergeFrom(b)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf(says, "update")) {
			t.Errorf("the status: %v", err)
		}
	})

	t.Run("a tenant may not write Works", func(t *testing.T) {
		for _, namespace := range []string{s.namespace, "karmada-es-" + member1} {
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}}
			if err := alice.Create(t.Context(), work, client.DryRunAll); !apierrors.IsForbidden(err) {
				t.Errorf("in %s: %v", namespace, err)
			}
		}
	})
}

// Who has the operator's token writes Secrets of clusters on the hub, and no others: they could be tokens of any ServiceAccount.
func TestThiefWritesSecrets(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	config := s.hub.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:fairlead-system:fairlead"}
	thief, err := client.New(config, client.Options{Scheme: s.hub.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}, Type: corev1.SecretTypeServiceAccountToken,
	}
	there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "there"}}
	s.create(t, s.hub, there)
	for _, namespace := range []string{s.namespace, "default", metav1.NamespaceSystem} {
		stolen := token.DeepCopy()
		stolen.Namespace = namespace
		// The API server reads admission policies from a cache.
		wait.Until(t, func(ctx context.Context) error {
			if err := thief.Create(ctx, stolen.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not create Secrets in namespace "+namespace) {
				return fmt.Errorf("created in %s: %w", namespace, err)
			}
			return nil
		})
	}
	changed := there.DeepCopy()
	changed.StringData = map[string]string{"password": "known"}
	if err := thief.Update(t.Context(), changed, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("updated: %v", err)
	}
	if err := thief.Delete(t.Context(), there, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("deleted: %v", err)
	}
	for _, namespace := range []string{"karmada-cluster", "karmada-es-" + member1} {
		own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.namespace}}
		if err := thief.Create(t.Context(), own, client.DryRunAll); err != nil {
			t.Errorf("in %s: %v", namespace, err)
		}
	}
}

// mayRead lets the operator read one more kind of the RBAC of the hub.
func (s *stage) mayRead(t testing.TB, resource string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + resource},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "fairlead-system", Name: "fairlead"}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := s.hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

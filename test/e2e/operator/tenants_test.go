package operator_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// writesOfOperator are the kinds that users read, and the operator alone writes.
var writesOfOperator = []string{
	"clusterresourcebindings.work.karmada.io", "meshconsumerslices.fairlead.dev", "meshservingreports.fairlead.dev", "resourcebindings.work.karmada.io", "works.work.karmada.io",
}

// Every kind of Fairlead is in the roles of users: what is in a namespace for those who edit it, the rest for administrators.
func TestChartUserRoles(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "internal", "crds", "manifests", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d CRDs: %v", len(files), err)
	}
	var all, namespaced, written []string
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		readYAML(t, file, &crd)
		if crd.Name != "works.work.karmada.io" { // which quote resources of all kinds
			all = append(all, crd.Name)
		}
		if slices.Contains(writesOfOperator, crd.Name) {
			continue
		}
		written = append(written, crd.Name)
		if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
			namespaced = append(namespaced, crd.Name)
		}
	}
	r := rendered(t, nil)
	for name, want := range map[string]struct {
		verb  string
		kinds []string
	}{"view": {"list", all}, "edit": {"update", namespaced}, "admin": {"update", written}} {
		t.Run(name, func(t *testing.T) {
			var role rbacv1.ClusterRole
			r.find(t, "ClusterRole", "fairlead-"+name, &role)
			if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+name] != "true" {
				t.Errorf("labels are %v", role.Labels)
			}
			var got []string
			for _, rule := range role.Rules {
				if !slices.Contains(rule.Verbs, want.verb) {
					if slices.Contains(rule.Verbs, "update") || rule.Resources[0] != "works" {
						t.Errorf("%v", rule)
					}
					continue
				}
				for _, resource := range rule.Resources {
					got = append(got, resource+"."+rule.APIGroups[0])
				}
			}
			slices.Sort(got)
			slices.Sort(want.kinds)
			if diff := cmp.Diff(want.kinds, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, object := range rendered(t, map[string]any{"rbac": map[string]any{"userRoles": false}}).Objects {
		if object.GetKind() == "ClusterRole" && strings.HasSuffix(object.GetName(), "-edit") {
			t.Error("the roles are still there")
		}
	}
}

func TestChartRestrictsWritesOfBindings(t *testing.T) {
	const suffix = "writes.fairlead.fairlead-system.adoption.fairlead.dev"
	var policy admissionv1.ValidatingAdmissionPolicy
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	r := rendered(t, map[string]any{"adoption": map[string]any{"writerGroups": []any{"platform"}}})
	r.find(t, "ValidatingAdmissionPolicy", suffix, &policy)
	r.find(t, "ValidatingAdmissionPolicyBinding", suffix, &binding)
	if binding.Spec.PolicyName != policy.Name || !slices.Equal(binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny}) {
		t.Errorf("bound as %+v", binding.Spec)
	}
	conditions := policy.Spec.MatchConditions
	if len(conditions) != 2 || !strings.Contains(conditions[0].Expression, "'system:serviceaccount:fairlead-system:fairlead'") || !strings.Contains(conditions[1].Expression, "['platform']") {
		t.Errorf("exempt: %+v", conditions)
	}
	for name, values := range map[string]map[string]any{
		"switched off":     {"adoption": map[string]any{"restrictWrites": false}, "passages": []any{"adoption"}},
		"without adoption": {"passages": []any{"rollout"}},
	} {
		t.Run(name, func(t *testing.T) {
			if rendered(t, values).has("ValidatingAdmissionPolicy") {
				t.Error("the policy is still there")
			}
		})
	}
}

// Where no other passage writes Secrets, the operator writes those of clusters only.
func TestChartRestrictsSecretsOfTheOperator(t *testing.T) {
	const name = "secrets.fairlead.fairlead-system.adoption.fairlead.dev"
	for text, c := range map[string]struct {
		passages   []any
		restricted bool
		want       bool
	}{
		"adoption alone":            {[]any{"adoption"}, true, true},
		"adoption and a mesh":       {[]any{"meshservice", "adoption"}, true, true},
		"switched off":              {[]any{"adoption"}, false, false},
		"with all passages":         {[]any{}, true, false},
		"with Helm's records":       {[]any{"adoption", "revision"}, true, false},
		"with those of a backend":   {[]any{"adoption", "rollout"}, true, false},
		"without adoption":          {[]any{"meshservice"}, true, false},
		"nor with the other writer": {[]any{"rollout"}, true, false},
	} {
		t.Run(text, func(t *testing.T) {
			r := rendered(t, map[string]any{"passages": c.passages, "adoption": map[string]any{"restrictWrites": c.restricted}})
			there := slices.ContainsFunc(r.Objects, func(o *unstructured.Unstructured) bool { return o.GetName() == name })
			if there != c.want {
				t.Fatalf("the policy is there: %t", there)
			}
			if !there {
				return
			}
			var policy admissionv1.ValidatingAdmissionPolicy
			var binding admissionv1.ValidatingAdmissionPolicyBinding
			r.find(t, "ValidatingAdmissionPolicy", name, &policy)
			r.find(t, "ValidatingAdmissionPolicyBinding", name, &binding)
			if binding.Spec.PolicyName != policy.Name || !slices.Equal(binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny}) {
				t.Errorf("bound as %+v", binding.Spec)
			}
			for _, namespace := range []string{model.SecretNamespace, model.ExecutionPrefix} {
				if expression := policy.Spec.Validations[0].Expression; !strings.Contains(expression, "'"+namespace+"'") {
					t.Errorf("%s is not admitted: %s", namespace, expression)
				}
			}
		})
	}
}

// Kubernetes adds the roles of the chart to its own, so that who edits a namespace writes policies there, and nothing that the
// operator makes of them.
func TestUserWhoEditsANamespace(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	admin := administrator(t, c.Config())
	namespace := c.Namespace(t)
	r, err := renderChart("fairlead", namespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range r.Objects {
		if object.GetKind() != "ClusterRole" || !slices.ContainsFunc([]string{"-view", "-edit", "-admin"}, func(end string) bool { return strings.HasSuffix(object.GetName(), end) }) {
			continue
		}
		t.Cleanup(func() { _ = admin.Delete(context.Background(), object) })
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	create(t, admin, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edit"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice-" + namespace}},
	})
	may := func(ctx context.Context, verb, namespace, resource, group string) (bool, error) {
		attributes := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group}
		attributes.Resource, attributes.Subresource, _ = strings.Cut(resource, "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "alice-" + r.Namespace, ResourceAttributes: attributes}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	}
	wait.Until(t, func(ctx context.Context) error {
		for _, verb := range []string{"get", "create", "update", "delete"} {
			for _, kind := range []string{"propagationpolicies.policy.karmada.io", "materializes.materialize.cloud", "meshtimeouts.kuma.io"} {
				resource, group, _ := strings.Cut(kind, ".")
				if allowed, err := may(ctx, verb, namespace, resource, group); err != nil || !allowed {
					return fmt.Errorf("%s %s: %t, %w", verb, kind, allowed, err)
				}
			}
		}
		return nil
	})
	for name, asked := range map[string][4]string{
		"a ResourceBinding":               {"create", namespace, "resourcebindings", "work.karmada.io"},
		"the status of a ResourceBinding": {"update", namespace, "resourcebindings/status", "work.karmada.io"},
		"a Work":                          {"create", namespace, "works", "work.karmada.io"},
		"a policy of another namespace":   {"create", "default", "propagationpolicies", "policy.karmada.io"},
		"a policy of the cluster":         {"create", "", "clusterpropagationpolicies", "policy.karmada.io"},
		"a Cluster":                       {"update", "", "clusters", "cluster.karmada.io"},
		"an Istio":                        {"update", "", "istios", "sailoperator.io"},
	} {
		t.Run(name, func(t *testing.T) {
			if allowed, err := may(t.Context(), asked[0], asked[1], asked[2], asked[3]); err != nil || allowed {
				t.Errorf("allowed: %t, %v", allowed, err)
			}
		})
	}
}

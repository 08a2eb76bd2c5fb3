package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// operatorNamespace is where the chart is installed.
const operatorNamespace = "fairlead-system"

// NewAdminClient may do everything in a cluster and knows all kinds.
func NewAdminClient(c *cluster.Cluster) (client.WithWatch, error) {
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.NewWithWatch(c.Config(), client.Options{Scheme: scheme})
}

// InstallPermissions applies the ServiceAccount, the RBAC and the admission policy of adoption of the chart to a cluster, for these
// passages or for all, and writes a kubeconfig of that ServiceAccount into the directory.
func InstallPermissions(ctx context.Context, c *cluster.Cluster, admin client.Client, dir string, passages ...any) (string, error) {
	err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})
	if client.IgnoreAlreadyExists(err) != nil {
		return "", fmt.Errorf("create namespace %s: %w", operatorNamespace, err)
	}
	release, err := chart.Render("fairlead", operatorNamespace, map[string]any{"passages": passages})
	if err != nil {
		return "", err
	}
	if err := release.Apply(ctx, admin, "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"); err != nil {
		return "", err
	}
	for _, object := range release.Objects {
		switch kind := object.GetKind(); {
		case strings.HasPrefix(kind, "ValidatingAdmissionPolicy") && strings.HasSuffix(object.GetName(), ".adoption.fairlead.dev"):
			if err := (chart.Release{Objects: []*unstructured.Unstructured{object}}).Apply(ctx, admin); err != nil {
				return "", err
			}
			continue
		case kind != "ClusterRole" && kind != "Role":
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return "", err
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(role.Labels)), func(label string) bool { return strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") }) {
			continue // for users
		}
		at := slices.IndexFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Resources) > 0 })
		if at < 0 {
			continue
		}
		if err := AwaitAuthorization(ctx, admin, "system:serviceaccount:"+operatorNamespace+":fairlead", cmp.Or(role.Namespace, operatorNamespace), role.Rules[at]); err != nil {
			return "", err
		}
	}
	return writeKubeconfig(ctx, c, admin, release, "fairlead", filepath.Join(dir, "operator.kubeconfig"))
}

// InstallServingPermissions applies the ServiceAccount and the RBAC of the processes that serve proxies, and writes a kubeconfig of
// that ServiceAccount into the directory.
func InstallServingPermissions(ctx context.Context, c *cluster.Cluster, admin client.Client, dir string) (string, error) {
	release, err := chart.Render("fairlead", operatorNamespace, map[string]any{
		"passages": []any{"meshservice"}, "mesh": map[string]any{"serving": map[string]any{"enabled": true, "certificateSecret": "proxies"}},
	})
	if err != nil {
		return "", err
	}
	release.Objects = slices.DeleteFunc(release.Objects, func(o *unstructured.Unstructured) bool { return !strings.HasSuffix(o.GetName(), "fairlead-mesh") })
	if err := release.Apply(ctx, admin, "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"); err != nil {
		return "", err
	}
	for _, object := range release.Objects {
		if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return "", err
		}
		user := "system:serviceaccount:" + operatorNamespace + ":fairlead-mesh"
		if err := AwaitAuthorization(ctx, admin, user, cmp.Or(role.Namespace, operatorNamespace), role.Rules[0]); err != nil {
			return "", err
		}
	}
	return writeKubeconfig(ctx, c, admin, release, "fairlead-mesh", filepath.Join(dir, "serving.kubeconfig"))
}

// writeKubeconfig writes a kubeconfig of a ServiceAccount of the chart, and returns its path.
func writeKubeconfig(ctx context.Context, c *cluster.Cluster, admin client.Client, release chart.Release, account, path string) (string, error) {
	token, err := release.Token(ctx, admin, account)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		return "", err
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token
	}
	return path, clientcmd.WriteToFile(*config, path)
}

// AwaitAuthorization waits until the API server, which reads roles from a cache, allows a user what a rule grants in a
// namespace.
func AwaitAuthorization(ctx context.Context, admin client.Client, user, namespace string, rule rbacv1.PolicyRule) error {
	asked := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0]}
	asked.Resource, asked.Subresource, _ = strings.Cut(rule.Resources[0], "/")
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	return wait.Try(ctx, func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &asked}}
		if err := admin.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return fmt.Errorf("%s may not %s %s: %s", user, asked.Verb, rule.Resources[0], review.Status.Reason)
		}
		return nil
	})
}

// AggregateMemberRole stands in for the controller that aggregates ClusterRoles, which a cluster without controllers lacks:
// it gives the role of the hub in a member the rules of the roles that it aggregates.
func AggregateMemberRole(ctx context.Context, member client.Client) error {
	var common, all rbacv1.ClusterRole
	if err := member.Get(ctx, client.ObjectKey{Name: model.MemberRole + "-common"}, &common); err != nil {
		return err
	}
	if err := member.Get(ctx, client.ObjectKey{Name: model.MemberRole}, &all); err != nil {
		return err
	}
	all.Rules = common.Rules
	return member.Update(ctx, &all)
}

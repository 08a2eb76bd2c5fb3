package member

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// createRBAC gives the hub an account in the cluster.
func createRBAC(ctx context.Context, kube kubernetes.Interface, account string) error {
	label := map[string]string{"app.kubernetes.io/part-of": "fairlead"}
	own := metav1.CreateOptions{FieldManager: model.FieldOwner}
	inMember := namespaceClient{
		create: func(ctx context.Context, n *corev1.Namespace) error {
			_, err := kube.CoreV1().Namespaces().Create(ctx, n, own)
			return err
		},
		get: func(ctx context.Context, name string) (*corev1.Namespace, error) {
			return kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		},
	}
	err := inMember.ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: model.MemberNamespace, Labels: label}})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", model.MemberNamespace, err)
	}
	_, err = kube.CoreV1().ServiceAccounts(model.MemberNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Labels: label}}, own)
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create ServiceAccount %s/%s: %w", model.MemberNamespace, account, err)
	}
	for _, role := range memberRoles() {
		_, err := kube.RbacV1().ClusterRoles().Create(ctx, role, own)
		if apierrors.IsAlreadyExists(err) && role.AggregationRule == nil {
			_, err = kube.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{FieldManager: model.FieldOwner})
		}
		if client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create ClusterRole %s: %w", role.Name, err)
		}
	}
	if err := createTokenRole(ctx, kube, account, label, own); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: model.MemberRole + "-" + account, Labels: model.MergeKeys(label, nil, map[string]string{model.LabelMemberBinding: "true"})},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: model.MemberRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: model.MemberNamespace, Name: account}},
	}
	if _, err := kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, own); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create ClusterRoleBinding %s: %w", binding.Name, err)
	}
	return nil
}

// memberVerbs are what the hub does to the objects of a cluster.
var memberVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// createTokenRole lets the hub renew its own token, and no other.
func createTokenRole(ctx context.Context, kube kubernetes.Interface, account string, label map[string]string, own metav1.CreateOptions) error {
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: account, Labels: label},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"},
		}},
	}
	if _, err := kube.RbacV1().Roles(model.MemberNamespace).Create(ctx, role, own); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create Role %s/%s: %w", model.MemberNamespace, account, err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account, Labels: label},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: model.MemberNamespace, Name: account}},
	}
	if _, err := kube.RbacV1().RoleBindings(model.MemberNamespace).Create(ctx, binding, own); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create RoleBinding %s/%s: %w", model.MemberNamespace, account, err)
	}
	return nil
}

// memberRoles are what the hub may do in a cluster: the kinds that most people have, and what others add.
func memberRoles() []*rbacv1.ClusterRole {
	label := map[string]string{"app.kubernetes.io/part-of": "fairlead"}
	return []*rbacv1.ClusterRole{
		{
			ObjectMeta:      metav1.ObjectMeta{Name: model.MemberRole, Labels: label},
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{model.LabelMemberRole: "true"}}}},
			Rules:           []rbacv1.PolicyRule{},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: model.MemberRole + "-common", Labels: map[string]string{"app.kubernetes.io/part-of": "fairlead", model.LabelMemberRole: "true"}},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps", "secrets", "services", "serviceaccounts", "persistentvolumeclaims"}, Verbs: memberVerbs},
				{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: memberVerbs},
				{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}, Verbs: memberVerbs},
				{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "networkpolicies"}, Verbs: memberVerbs},
				{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: memberVerbs},
				{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: memberVerbs},
				{NonResourceURLs: []string{"/version", "/readyz"}, Verbs: []string{"get"}},
			},
		},
	}
}

// deleteRBAC deletes the account and the roles of the hub in a cluster, and describes those that are left. With its own token the
// hub can delete no more than its account.
func deleteRBAC(ctx context.Context, member *rest.Config, account string, administrator bool) (string, error) {
	kube, err := kubernetes.NewForConfig(member)
	if err != nil {
		return "", fmt.Errorf("connect to the cluster: %w", err)
	}
	gone := metav1.DeleteOptions{}
	binding := model.MemberRole + "-" + account
	if !administrator {
		rest := fmt.Sprintf("ClusterRole %s and ClusterRoleBinding %s, which are unused", model.MemberRole, binding)
		err := kube.CoreV1().ServiceAccounts(model.MemberNamespace).Delete(ctx, account, gone)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Sprintf("ServiceAccount %s/%s, %s", model.MemberNamespace, account, rest), nil
		}
		return rest, nil
	}
	if err := kube.RbacV1().ClusterRoleBindings().Delete(ctx, binding, gone); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("delete ClusterRoleBinding %s: %w", binding, err)
	}
	if err := kube.CoreV1().ServiceAccounts(model.MemberNamespace).Delete(ctx, account, gone); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("delete ServiceAccount %s/%s: %w", model.MemberNamespace, account, err)
	}
	others, err := kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{LabelSelector: model.LabelMemberBinding})
	if err != nil || len(others.Items) > 0 {
		// Another hub has joined the cluster too.
		return "", err
	}
	for _, role := range memberRoles() {
		if err := kube.RbacV1().ClusterRoles().Delete(ctx, role.Name, gone); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("delete ClusterRole %s: %w", role.Name, err)
		}
	}
	if err := kube.CoreV1().Namespaces().Delete(ctx, model.MemberNamespace, gone); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("delete namespace %s: %w", model.MemberNamespace, err)
	}
	return "", nil
}

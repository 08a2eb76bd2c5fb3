package member

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// createRBAC gives the hub an account in the cluster.
func createRBAC(ctx context.Context, member client.Client, account string) error {
	namespace := &corev1.Namespace{ObjectMeta: memberMeta("", model.MemberNamespace)}
	if err := ensureNamespace(ctx, member, namespace); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	for _, object := range append(memberRoles(), accountObjects(account)...) {
		err := member.Create(ctx, object, client.FieldOwner(model.FieldOwner))
		if role, ok := object.(*rbacv1.ClusterRole); ok && role.AggregationRule == nil && apierrors.IsAlreadyExists(err) {
			err = member.Update(ctx, role, client.FieldOwner(model.FieldOwner))
		}
		if client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create %s: %w", describe(member, object), err)
		}
	}
	return nil
}

// describe names an object by kind, namespace and name.
func describe(c client.Client, object client.Object) string {
	kind, _ := c.GroupVersionKindFor(object)
	return kind.Kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/")
}

// memberVerbs are what the hub does to the objects of a cluster.
var memberVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// memberMeta is the metadata of an object of the hub in a cluster. The further labels are set to "true".
func memberMeta(namespace, name string, labels ...string) metav1.ObjectMeta {
	all := map[string]string{"app.kubernetes.io/part-of": "fairlead"}
	for _, label := range labels {
		all[label] = "true"
	}
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: all}
}

// accountObjects are the ServiceAccount of a hub, and what binds roles to it. Its Role lets the hub renew its own token, and no
// other.
func accountObjects(account string) []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: model.MemberNamespace, Name: account}}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: memberMeta(model.MemberNamespace, account)},
		&rbacv1.Role{
			ObjectMeta: memberMeta(model.MemberNamespace, account),
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: memberMeta(model.MemberNamespace, account), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: memberMeta("", memberBindingName(account), model.LabelMemberBinding), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: model.MemberRole},
		},
	}
}

// memberRoles are what the hub may do in a cluster: the kinds that most people have, and what others add.
func memberRoles() []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta:      memberMeta("", model.MemberRole),
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{model.LabelMemberRole: "true"}}}},
			Rules:           []rbacv1.PolicyRule{},
		},
		&rbacv1.ClusterRole{
			ObjectMeta: memberMeta("", model.MemberRole+"-common", model.LabelMemberRole),
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps", "secrets", "services", "serviceaccounts", "persistentvolumeclaims"}, Verbs: memberVerbs},
				{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: memberVerbs},
				{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}, Verbs: memberVerbs},
				{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "networkpolicies"}, Verbs: memberVerbs},
				{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: memberVerbs},
				{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: memberVerbs},
				// The room that replicas are divided by.
				{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}},
				{NonResourceURLs: []string{"/version", "/readyz"}, Verbs: []string{"get"}},
			},
		},
	}
}

// deleteRBAC deletes the account and the roles of the hub in a cluster, and describes those that are left. With its own token the
// hub can delete no more than its account.
func deleteRBAC(ctx context.Context, config *rest.Config, account string, administrator bool) (string, error) {
	member, err := client.New(withTimeout(config), client.Options{})
	if err != nil {
		return "", fmt.Errorf("connect to the cluster: %w", err)
	}
	if administrator {
		return "", deleteAccountAndRoles(ctx, member, account)
	}
	return deleteAccount(ctx, member, account), nil
}

func memberBindingName(account string) string { return model.MemberRole + "-" + account }

// deleteAccount describes what is left.
func deleteAccount(ctx context.Context, member client.Client, account string) string {
	left := fmt.Sprintf("ClusterRole %s and ClusterRoleBinding %s, which are unused", model.MemberRole, memberBindingName(account))
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: model.MemberNamespace, Name: account}}
	if err := member.Delete(ctx, serviceAccount); client.IgnoreNotFound(err) != nil {
		return fmt.Sprintf("ServiceAccount %s/%s, %s", model.MemberNamespace, account, left)
	}
	return left
}

func deleteAccountAndRoles(ctx context.Context, member client.Client, account string) error {
	if err := deleteObjects(ctx, member, accountObjects(account)...); err != nil {
		return err
	}
	var others rbacv1.ClusterRoleBindingList
	if err := member.List(ctx, &others, client.HasLabels{model.LabelMemberBinding}); err != nil || len(others.Items) > 0 {
		// Another hub has joined the cluster too.
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: model.MemberNamespace}}
	return deleteObjects(ctx, member, append(memberRoles(), namespace)...)
}

func deleteObjects(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", describe(c, object), err)
		}
	}
	return nil
}

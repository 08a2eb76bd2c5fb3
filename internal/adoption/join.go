package adoption

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// Where things are when a cluster has joined.
const (
	// SecretNamespace of the hub has the Secrets that clusters are reached with.
	SecretNamespace = "karmada-cluster"
	// MemberNamespace of a cluster has the ServiceAccount of the hub.
	MemberNamespace = "fairlead-member"
	// MemberRole is what the hub may do in a cluster: all that ClusterRoles with LabelMemberRole say.
	MemberRole = "fairlead-member"
	// LabelMemberRole set to "true" on a ClusterRole of a cluster lets the hub do what that says.
	LabelMemberRole = "fairlead.dev/aggregate-to-member"
	// LabelMemberBinding marks the ClusterRoleBindings of hubs in a cluster.
	LabelMemberBinding = "fairlead.dev/member"
)

// Join makes a cluster a member of the hub. It can be called again: what is there already stays.
func Join(ctx context.Context, hub client.Client, hubID, name string, member *rest.Config) error {
	if err := acceptable(name, member); err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(member)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	system, err := kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("find out which cluster it is: %w", err)
	}
	if err := newcomer(ctx, hub, name, string(system.UID)); err != nil {
		return err
	}
	account := accountOf(hubID)
	if err := admit(ctx, kube, account); err != nil {
		return err
	}
	token, err := askForToken(ctx, member, account)
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(member); err != nil {
		return fmt.Errorf("read the certificate authority of the cluster: %w", err)
	}
	return enrol(ctx, hub, name, string(system.UID), member, account, token)
}

// longestCluster leaves room for what namespaces of the hub begin with.
const longestCluster = 63 - len(executionPrefix)

// acceptable refuses what would fail half way.
func acceptable(name string, member *rest.Config) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be the name of a cluster: %s", name, problems[0])
	}
	if len(name) > longestCluster {
		return fmt.Errorf("%q cannot be the name of a cluster: it may have %d characters, for namespace %s", name, longestCluster, executionNamespace("NAME"))
	}
	switch {
	case member.Insecure:
		return errors.New("the kubeconfig has insecure-skip-tls-verify, which the hub does not do: give its certificate-authority instead")
	case member.ServerName != "":
		return errors.New("the kubeconfig has a tls-server-name, which the hub does not use: give a server whose certificate is for its address")
	case member.Proxy != nil:
		return errors.New("the kubeconfig has a proxy-url, which the hub does not use: give a server that the hub can reach")
	}
	return nil
}

// accountOf is the ServiceAccount of a hub in a cluster.
func accountOf(hubID string) string { return "hub-" + digest(hubID) }

// newcomer refuses a cluster that has joined under another name, and a name that another cluster has.
func newcomer(ctx context.Context, hub client.Client, name, id string) error {
	var all clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &all); err != nil {
		return fmt.Errorf("list the clusters that have joined: %w", err)
	}
	for _, c := range all.Items {
		switch {
		case c.Spec.ID == id && c.Name != name:
			return fmt.Errorf("this cluster has joined as %s already: `fairlead unjoin %s` first, or go on with that name", c.Name, c.Name)
		case c.Spec.ID != id && c.Name == name:
			return fmt.Errorf("another cluster has joined as %s: choose another name, or `fairlead unjoin %s` first", name, name)
		}
	}
	return nil
}

// admit gives the hub an account in the cluster.
func admit(ctx context.Context, kube kubernetes.Interface, account string) error {
	label := map[string]string{"app.kubernetes.io/part-of": "fairlead"}
	own := metav1.CreateOptions{FieldManager: FieldOwner}
	inMember := namespaces{
		create: func(ctx context.Context, n *corev1.Namespace) error {
			_, err := kube.CoreV1().Namespaces().Create(ctx, n, own)
			return err
		},
		get: func(ctx context.Context, name string) (*corev1.Namespace, error) {
			return kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		},
	}
	err := inMember.prepare(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: MemberNamespace, Labels: label}})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", MemberNamespace, err)
	}
	_, err = kube.CoreV1().ServiceAccounts(MemberNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Labels: label}}, own)
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create ServiceAccount %s/%s: %w", MemberNamespace, account, err)
	}
	for _, role := range memberRoles() {
		_, err := kube.RbacV1().ClusterRoles().Create(ctx, role, own)
		if apierrors.IsAlreadyExists(err) && role.AggregationRule == nil {
			_, err = kube.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{FieldManager: FieldOwner})
		}
		if client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create ClusterRole %s: %w", role.Name, err)
		}
	}
	if err := admitToItself(ctx, kube, account, label, own); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: MemberRole + "-" + account, Labels: joined(label, nil, map[string]string{LabelMemberBinding: "true"})},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: MemberRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: MemberNamespace, Name: account}},
	}
	if _, err := kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, own); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create ClusterRoleBinding %s: %w", binding.Name, err)
	}
	return nil
}

// memberVerbs are what the hub does to the objects of a cluster.
var memberVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// admitToItself lets the hub renew its own token, and no other.
func admitToItself(ctx context.Context, kube kubernetes.Interface, account string, label map[string]string, own metav1.CreateOptions) error {
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: account, Labels: label},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"},
		}},
	}
	if _, err := kube.RbacV1().Roles(MemberNamespace).Create(ctx, role, own); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create Role %s/%s: %w", MemberNamespace, account, err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account, Labels: label},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: MemberNamespace, Name: account}},
	}
	if _, err := kube.RbacV1().RoleBindings(MemberNamespace).Create(ctx, binding, own); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create RoleBinding %s/%s: %w", MemberNamespace, account, err)
	}
	return nil
}

// memberRoles are what the hub may do in a cluster: the kinds that most people have, and what others add.
func memberRoles() []*rbacv1.ClusterRole {
	label := map[string]string{"app.kubernetes.io/part-of": "fairlead"}
	return []*rbacv1.ClusterRole{
		{
			ObjectMeta:      metav1.ObjectMeta{Name: MemberRole, Labels: label},
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{LabelMemberRole: "true"}}}},
			Rules:           []rbacv1.PolicyRule{},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: MemberRole + "-common", Labels: map[string]string{"app.kubernetes.io/part-of": "fairlead", LabelMemberRole: "true"}},
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

// enrol writes down on the hub how the cluster is reached.
func enrol(ctx context.Context, hub client.Client, name, id string, member *rest.Config, account string, token authenticationv1.TokenRequestStatus) error {
	onHub := namespaces{
		create: func(ctx context.Context, n *corev1.Namespace) error {
			return hub.Create(ctx, n, client.FieldOwner(FieldOwner))
		},
		get: func(ctx context.Context, name string) (*corev1.Namespace, error) {
			n := &corev1.Namespace{}
			return n, hub.Get(ctx, client.ObjectKey{Name: name}, n)
		},
	}
	for _, namespace := range []string{SecretNamespace, executionNamespace(name)} {
		if err := onHub.prepare(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return fmt.Errorf("create namespace %s on the hub: %w", namespace, err)
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: SecretNamespace, Name: name},
		Data:       map[string][]byte{secretAuthority: member.CAData},
	}
	store(secret, account, token, time.Now())
	err := hub.Create(ctx, secret, client.FieldOwner(FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		err = hub.Update(ctx, secret, client.FieldOwner(FieldOwner))
	}
	if err != nil {
		return fmt.Errorf("write Secret %s/%s on the hub: %w", SecretNamespace, name, err)
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{FinalizerCluster}},
		Spec: clusterv1alpha1.ClusterSpec{
			ID: id, SyncMode: "Push", APIEndpoint: member.Host,
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: SecretNamespace, Name: name},
		},
	}
	err = hub.Create(ctx, cluster, client.FieldOwner(FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		have := &clusterv1alpha1.Cluster{}
		if err := hub.Get(ctx, client.ObjectKeyFromObject(cluster), have); err != nil {
			return fmt.Errorf("get Cluster %s: %w", name, err)
		}
		if have.Spec.APIEndpoint == cluster.Spec.APIEndpoint {
			return nil
		}
		have.Spec.APIEndpoint = cluster.Spec.APIEndpoint
		if err := hub.Update(ctx, have, client.FieldOwner(FieldOwner)); err != nil {
			return fmt.Errorf("update Cluster %s: %w", name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("create Cluster %s on the hub: %w", name, err)
	}
	return nil
}

// HubID tells a hub from all others.
func HubID(ctx context.Context, reader client.Reader) (string, error) { return hubID(ctx, reader) }

package adoption

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// Parting is how a cluster leaves the hub.
type Parting struct {
	// DeleteResources deletes what Fairlead manages there, instead of leaving it running without its marks.
	DeleteResources bool
	// Abandon leaves a cluster as it is that cannot be reached.
	Abandon bool
	// Member is an administrator's access to the cluster, if there is one, to remove the role of the hub too.
	Member *rest.Config
	// Progress is told how many objects have yet to be let go of.
	Progress func(left int)
}

// Unjoin ends that a cluster is a member of the hub, and gives what is left of that in the cluster, in words. It can be called
// again when it was interrupted.
func Unjoin(ctx context.Context, hub client.Client, hubID, name string, how Parting) (left string, err error) {
	var c clusterv1alpha1.Cluster
	err = hub.Get(ctx, client.ObjectKey{Name: name}, &c)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get Cluster %s: %w", name, err)
	}
	member := how.Member
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: SecretNamespace, Name: name}
	missing := hub.Get(ctx, key, secret)
	if client.IgnoreNotFound(missing) != nil {
		return "", fmt.Errorf("get Secret %s: %w", key, missing)
	}
	if err != nil && missing != nil {
		return "", fmt.Errorf("no cluster has joined as %s: `fairlead clusters` shows those that have", name)
	}
	if err == nil {
		if err := dismiss(ctx, hub, &c, how); err != nil {
			return "", err
		}
		if member == nil && missing == nil {
			member = accessTo(&c, secret, Limits{})
		}
	}
	account := accountOf(hubID)
	if member == nil || how.Abandon && how.Member == nil {
		left = fmt.Sprintf("ServiceAccount %s/%s and ClusterRole %s", MemberNamespace, account, MemberRole)
	} else if left, err = expel(ctx, member, account, how.Member != nil); err != nil {
		return "", err
	}
	if err := hub.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: SecretNamespace, Name: name}}); client.IgnoreNotFound(err) != nil {
		return left, fmt.Errorf("delete Secret %s: %w", key, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: executionNamespace(name)}}
	if err := hub.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return left, fmt.Errorf("delete namespace %s: %w", namespace.Name, err)
	}
	return left, nil
}

// dismiss deletes a Cluster, and waits until the operator has let go of all that it manages there.
func dismiss(ctx context.Context, hub client.Client, c *clusterv1alpha1.Cluster, how Parting) error {
	before := c.DeepCopy()
	for annotation, asked := range map[string]bool{AnnotationDeleteResources: how.DeleteResources, AnnotationAbandon: how.Abandon} {
		delete(c.Annotations, annotation)
		if asked {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, annotation, "true")
		}
	}
	if err := hub.Patch(ctx, c, client.MergeFrom(before), client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("tell Cluster %s how it leaves: %w", c.Name, err)
	}
	if err := hub.Delete(ctx, c); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Cluster %s: %w", c.Name, err)
	}
	for {
		err := hub.Get(ctx, client.ObjectKeyFromObject(c), c)
		if apierrors.IsNotFound(err) {
			return nil
		}
		var works workv1alpha1.WorkList
		if err == nil {
			err = hub.List(ctx, &works, client.InNamespace(executionNamespace(c.Name)))
		}
		if err == nil && how.Progress != nil {
			how.Progress(len(works.Items))
		}
		select {
		case <-ctx.Done():
			return errors.Join(stuck(c, len(works.Items)), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// stuck is why a cluster has not left, and what to do.
func stuck(c *clusterv1alpha1.Cluster, works int) error {
	if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		return fmt.Errorf("%d objects have yet to be let go of, and the cluster cannot be reached (%s): it leaves when it is back, or at once and as it is with --force",
			works, ready.Message)
	}
	return fmt.Errorf("%d objects have yet to be let go of, which the operator does: see whether it runs; run this again to go on waiting", works)
}

// expel removes what the hub has in a cluster, and gives what is left of it, in words. With its own token the hub can remove no
// more than its account.
func expel(ctx context.Context, member *rest.Config, account string, administrator bool) (string, error) {
	kube, err := kubernetes.NewForConfig(member)
	if err != nil {
		return "", fmt.Errorf("connect to the cluster: %w", err)
	}
	gone := metav1.DeleteOptions{}
	binding := MemberRole + "-" + account
	if !administrator {
		rest := fmt.Sprintf("ClusterRole %s and ClusterRoleBinding %s, which nobody uses", MemberRole, binding)
		err := kube.CoreV1().ServiceAccounts(MemberNamespace).Delete(ctx, account, gone)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Sprintf("ServiceAccount %s/%s, %s", MemberNamespace, account, rest), nil
		}
		return rest, nil
	}
	if err := kube.RbacV1().ClusterRoleBindings().Delete(ctx, binding, gone); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("delete ClusterRoleBinding %s: %w", binding, err)
	}
	if err := kube.CoreV1().ServiceAccounts(MemberNamespace).Delete(ctx, account, gone); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("delete ServiceAccount %s/%s: %w", MemberNamespace, account, err)
	}
	others, err := kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{LabelSelector: LabelMemberBinding})
	if err != nil || len(others.Items) > 0 {
		// Another hub has joined the cluster too.
		return "", err
	}
	for _, role := range memberRoles() {
		if err := kube.RbacV1().ClusterRoles().Delete(ctx, role.Name, gone); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("delete ClusterRole %s: %w", role.Name, err)
		}
	}
	if err := kube.CoreV1().Namespaces().Delete(ctx, MemberNamespace, gone); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("delete namespace %s: %w", MemberNamespace, err)
	}
	return "", nil
}

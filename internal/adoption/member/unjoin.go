package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// UnjoinOptions is how a cluster leaves the hub.
type UnjoinOptions struct {
	// DeleteResources deletes the managed objects, instead of orphaning them.
	DeleteResources bool
	// Abandon leaves the objects of a cluster that cannot be reached unchanged.
	Abandon bool
	// Member is an administrator's access to the cluster, if there is one, to remove the role of the hub too.
	Member *rest.Config
	// Progress is called with the number of objects that are not yet released.
	Progress func(left int)
}

// Unjoin removes a cluster from the hub, and describes what is left in the cluster. It can be called again when it was interrupted.
func Unjoin(ctx context.Context, hub client.Client, hubID, name string, how UnjoinOptions) (left string, err error) {
	var c clusterv1alpha1.Cluster
	err = hub.Get(ctx, client.ObjectKey{Name: name}, &c)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get Cluster %s: %w", name, err)
	}
	member := how.Member
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: model.SecretNamespace, Name: name}
	missing := hub.Get(ctx, key, secret)
	if client.IgnoreNotFound(missing) != nil {
		return "", fmt.Errorf("get Secret %s: %w", key, missing)
	}
	if err != nil && missing != nil {
		return "", fmt.Errorf("no cluster has joined as %s: `fairlead clusters` shows those that have", name)
	}
	if err == nil {
		if err := deleteCluster(ctx, hub, &c, how); err != nil {
			return "", err
		}
		if member == nil && missing == nil {
			member = restConfig(&c, secret, Limits{})
		}
	}
	account := accountName(hubID)
	if member == nil || how.Abandon && how.Member == nil {
		left = fmt.Sprintf("ServiceAccount %s/%s and ClusterRole %s", model.MemberNamespace, account, model.MemberRole)
	} else if left, err = deleteRBAC(ctx, member, account, how.Member != nil); err != nil {
		return "", err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: model.ExecutionNamespace(name)}}
	if err := hub.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return left, fmt.Errorf("delete namespace %s: %w", namespace.Name, err)
	}
	// The Secret goes last: as long as it is there, an interrupted command finds what is left to do.
	if err := hub.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: model.SecretNamespace, Name: name}}); client.IgnoreNotFound(err) != nil {
		return left, fmt.Errorf("delete Secret %s: %w", key, err)
	}
	return left, nil
}

// deleteCluster deletes a Cluster, and waits until the operator has released all objects there.
func deleteCluster(ctx context.Context, hub client.Client, c *clusterv1alpha1.Cluster, how UnjoinOptions) error {
	before := c.DeepCopy()
	for annotation, asked := range map[string]bool{model.AnnotationDeleteResources: how.DeleteResources, model.AnnotationAbandon: how.Abandon} {
		delete(c.Annotations, annotation)
		if asked {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, annotation, "true")
		}
	}
	if err := hub.Patch(ctx, c, client.MergeFrom(before), client.FieldOwner(model.FieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate Cluster %s: %w", c.Name, err)
	}
	if err := hub.Delete(ctx, c); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Cluster %s: %w", c.Name, err)
	}
	left := -1 // unknown
	for {
		err := hub.Get(ctx, client.ObjectKeyFromObject(c), c)
		if apierrors.IsNotFound(err) {
			return nil
		}
		var works workv1alpha1.WorkList
		if err == nil {
			err = hub.List(ctx, &works, client.InNamespace(model.ExecutionNamespace(c.Name)))
		}
		if err == nil {
			left = len(works.Items)
			if how.Progress != nil {
				how.Progress(left)
			}
		}
		if left >= 0 && errors.Is(err, ctx.Err()) {
			err = nil // The time-out ended a request; what was waited for is what matters.
		}
		select {
		case <-ctx.Done():
			return errors.Join(unjoinError(c, left), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// unjoinError is why a cluster has not left, and what to do.
func unjoinError(c *clusterv1alpha1.Cluster, works int) error {
	if works < 0 {
		return errors.New("the hub did not answer how many objects are not yet released: run the command again to continue waiting")
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		return fmt.Errorf("%d objects not yet released, and the cluster cannot be reached (%s): the cluster leaves when it can be reached again, or immediately and unchanged with --force",
			works, ready.Message)
	}
	return fmt.Errorf("%d objects not yet released by the operator: see whether the operator runs, and run the command again to continue waiting", works)
}

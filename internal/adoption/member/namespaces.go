package member

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// How long to wait for a namespace that is being deleted, because a cluster of the same name has just left, and how often to look.
const (
	namespaceTimeout  = time.Minute
	namespaceInterval = 200 * time.Millisecond
)

// ensureNamespace creates a namespace that does not exist, and waits for one that is being deleted.
func ensureNamespace(ctx context.Context, c client.Client, namespace *corev1.Namespace) error {
	isDeleting := false
	err := wait.PollUntilContextTimeout(ctx, namespaceInterval, namespaceTimeout, true, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, namespace.DeepCopy(), client.FieldOwner(model.FieldOwner))
		if !apierrors.IsAlreadyExists(err) {
			return true, err
		}
		have := &corev1.Namespace{}
		err = c.Get(ctx, client.ObjectKeyFromObject(namespace), have)
		isDeleting = err == nil && have.DeletionTimestamp != nil
		return err == nil && !isDeleting, client.IgnoreNotFound(err)
	})
	if isDeleting && wait.Interrupted(err) {
		return fmt.Errorf("the namespace is still being deleted: see its status for what is left, and run the command again: %w", err)
	}
	return err
}

package member

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How long to wait for a namespace that is being deleted, because a cluster of the same name has just left, and how often to look.
const (
	namespaceTimeout  = time.Minute
	namespaceInterval = 200 * time.Millisecond
)

// namespaceClient creates and gets namespaces of the hub, or of a cluster.
type namespaceClient struct {
	create func(context.Context, *corev1.Namespace) error
	get    func(ctx context.Context, name string) (*corev1.Namespace, error)
}

// ensure creates a namespace that does not exist, and waits for one that is being deleted.
func (n namespaceClient) ensure(ctx context.Context, namespace *corev1.Namespace) error {
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	for {
		err := n.create(ctx, namespace.DeepCopy())
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		have, err := n.get(ctx, namespace.Name)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && have.DeletionTimestamp == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the namespace is still being deleted: see its status for what is left, and run the command again: %w", context.Cause(ctx))
		case <-time.After(namespaceInterval):
		}
	}
}

package model

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsNamespaceDeleted tells whether a namespace of the hub is being deleted, and all that is in it with it, in any order. A namespace
// stays until the bindings in it are gone. The reader must not be a cache, which could have received the deletion of a policy or a
// binding before that of the namespace.
func IsNamespaceDeleted(ctx context.Context, reader client.Reader, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	namespace := NewMetadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

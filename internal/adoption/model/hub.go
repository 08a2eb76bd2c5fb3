package model

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// HubID tells this hub from all others: the UID of its namespace kube-system.
func HubID(ctx context.Context, reader client.Reader) (string, error) {
	system := NewMetadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("get the ID of the hub: %w", err)
	}
	return string(system.UID), nil
}

// IsAbandoned tells whether a cluster is to leave the hub as it is, labels included, for it cannot be reached.
func IsAbandoned(c *clusterv1alpha1.Cluster) bool {
	return c.DeletionTimestamp != nil && c.Annotations[AnnotationAbandon] == "true"
}

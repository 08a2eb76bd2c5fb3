package member

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// DiscoverKinds are the kinds of a cluster whose objects can be listed and deleted, each in the version that the cluster prefers.
func (m *Client) DiscoverKinds() ([]schema.GroupVersionKind, error) { return m.discover(false) }

// DiscoverNamespacedKinds are those whose objects are in namespaces.
func (m *Client) DiscoverNamespacedKinds() ([]schema.GroupVersionKind, error) {
	return m.discover(true)
}

func (m *Client) discover(namespacedOnly bool) ([]schema.GroupVersionKind, error) {
	discover, err := discovery.NewDiscoveryClientForConfig(m.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", m.Name, err)
	}
	lists, err := discover.ServerPreferredResources()
	// An API that does not answer leaves out its own kinds only.
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("discover the kinds of cluster %s: %w", m.Name, err)
	}
	var all []schema.GroupVersionKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && (r.Namespaced || !namespacedOnly) {
				all = append(all, version.WithKind(r.Kind))
			}
		}
	}
	return all, nil
}

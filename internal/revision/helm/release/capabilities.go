package release

import (
	"context"
	"fmt"
	"sync"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/client-go/discovery"
)

// capabilityCache of the cluster are what charts may ask for. They are discovered once, and again when a release has brought
// new kinds.
type capabilityCache struct {
	mu    sync.Mutex
	known *common.Capabilities
}

func (a *capabilityCache) invalidate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = nil
}

func (m *Manager) capabilities(ctx context.Context) (*common.Capabilities, error) {
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	if m.cluster.known != nil {
		return m.cluster.known, nil
	}
	config, err := m.configFor(ctx)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("discover what the cluster can do: %w", err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("discover what the cluster can do: %w", err)
	}
	served, err := action.GetVersionSet(client)
	if err != nil {
		return nil, fmt.Errorf("discover what the cluster can do: %w", err)
	}
	parsed, err := common.ParseKubeVersion(version.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("discover what the cluster can do: version %s: %w", version.GitVersion, err)
	}
	m.cluster.known = &common.Capabilities{
		KubeVersion: *parsed, APIVersions: served, HelmVersion: common.DefaultCapabilities.HelmVersion,
	}
	return m.cluster.known, nil
}

// Package connect finds the cluster and the resource that a command is about, as kubectl would.
package connect

import (
	"errors"
	"fmt"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/version"
)

// Flags find the cluster as kubectl would.
type Flags struct{ *genericclioptions.ConfigFlags }

func NewFlags() *Flags {
	return &Flags{&genericclioptions.ConfigFlags{
		KubeConfig:   ptr.To(""),
		Context:      ptr.To(""),
		ClusterName:  ptr.To(""),
		AuthInfoName: ptr.To(""),
		Namespace:    ptr.To(""),
		Timeout:      ptr.To("0"),
	}}
}

func (c *Flags) Config() (*rest.Config, error) {
	loader := c.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil && !clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	// client-go would go on and try localhost:8080, which nobody meant.
	if len(raw.Clusters) == 0 && !insideCluster() {
		return nil, errors.New("no cluster to talk to: name a kubeconfig with --kubeconfig or $KUBECONFIG")
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("use kubeconfig: %w", err)
	}
	build := version.Get()
	config.UserAgent = fmt.Sprintf("fairlead/%s (%s)", build.Version, build.Platform)
	return config, nil
}

func insideCluster() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}

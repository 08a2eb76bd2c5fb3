// Package connect finds the cluster and the resource that a command is about, as kubectl would.
package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	if err := RequireFile("--kubeconfig", *c.KubeConfig); err != nil {
		return nil, err
	}
	loader := c.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil && !clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	// client-go would go on and try localhost:8080, which nobody meant.
	if len(raw.Clusters) == 0 && !insideCluster() {
		return nil, errors.New("no cluster to talk to: " + missingKubeconfig() + "name the kubeconfig of a cluster with --kubeconfig or $KUBECONFIG")
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("use kubeconfig: %w", err)
	}
	build := version.Get()
	config.UserAgent = fmt.Sprintf("fairlead/%s (%s)", build.Version, build.Platform)
	return config, nil
}

// RequireFile is an error for a flag that names a file that does not exist.
func RequireFile(flag, path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s names %s, which does not exist: name the kubeconfig of a cluster", flag, path)
	}
	return nil
}

// missingKubeconfig names the files in $KUBECONFIG that do not exist. client-go skips them silently.
func missingKubeconfig() string {
	var missing []string
	for _, path := range filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)) {
		if _, err := os.Stat(path); path != "" && errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, path)
		}
	}
	switch len(missing) {
	case 0:
		return ""
	case 1:
		return "$KUBECONFIG names " + missing[0] + ", which does not exist; "
	}
	return "$KUBECONFIG names " + strings.Join(missing, ", ") + ", which do not exist; "
}

func insideCluster() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}

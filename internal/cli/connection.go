package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/version"
)

// connection finds the cluster as kubectl would.
type connection struct {
	flags *genericclioptions.ConfigFlags
}

func newConnection() *connection {
	return &connection{flags: &genericclioptions.ConfigFlags{
		KubeConfig:   ptr.To(""),
		Context:      ptr.To(""),
		ClusterName:  ptr.To(""),
		AuthInfoName: ptr.To(""),
		Namespace:    ptr.To(""),
		Timeout:      ptr.To("0"),
	}}
}

func (c *connection) addFlags(flags *pflag.FlagSet) { c.flags.AddFlags(flags) }

func (c *connection) config() (*rest.Config, error) {
	loader := c.flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	case err != nil && !clientcmd.IsEmptyConfig(err):
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

// cluster is a connection that has been made.
type cluster struct {
	config *rest.Config
	client client.Client
	mapper meta.RESTMapper
	// namespace of -n or, failing that, of the kubeconfig's context.
	namespace string
}

func (c *connection) connect() (*cluster, error) {
	// A command speaks for itself; libraries that log have nothing to say to who runs it.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	// A command asks a few things at once, and the API server has limits of its own.
	config.QPS = -1
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("find the namespace: %w", err)
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	if _, err := discover.ServerVersion(); err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(discover)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, err
	}
	// The operator never reads a pod; who watches a rollout wants to know what it waits for.
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	cl, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &cluster{config: config, client: cl, mapper: mapper, namespace: namespace}, nil
}

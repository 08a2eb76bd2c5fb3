package connect

import (
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/operator"
)

// Cluster is a connection that has been made.
type Cluster struct {
	Config *rest.Config
	Client client.Client
	Mapper meta.RESTMapper
	// Namespace of -n or, failing that, of the kubeconfig's context.
	Namespace string
}

func (c *Flags) Connect() (*Cluster, error) {
	// A command speaks for itself; libraries that log have nothing to say to who runs it.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	// A command asks a few things at once, and the API server has limits of its own.
	config.QPS = -1
	namespace, _, err := c.ToRawKubeConfigLoader().Namespace()
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
	return &Cluster{Config: config, Client: cl, Mapper: mapper, Namespace: namespace}, nil
}

package meshservice

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/server"
)

// xdsServer is a runnable that serves the store over xDS.
type xdsServer struct {
	options ServingOptions
	where   desired.ZoneInfo
	store   *server.Store
	manager ctrl.Manager
	address *listenAddress
}

// listenAddress is where the xDS server listens.
type listenAddress struct {
	text atomic.Pointer[string]
	// listening is closed when there is an address.
	listening chan struct{}
}

func newListenAddress() *listenAddress { return &listenAddress{listening: make(chan struct{})} }

// set records the address of a listener, once, with the host as it was given. The given port may be 0.
func (a *listenAddress) set(given string, listener net.Addr) {
	address := listener.String()
	if host, _, err := net.SplitHostPort(given); err == nil {
		if _, port, err := net.SplitHostPort(address); err == nil {
			address = net.JoinHostPort(host, port)
		}
	}
	a.text.Store(&address)
	close(a.listening)
}

// get returns the address, or nothing before the server listens.
func (a *listenAddress) get() string { return ptr.Deref(a.text.Load(), "") }

// Start serves until the context ends.
func (s *xdsServer) Start(ctx context.Context) error {
	log := s.manager.GetLogger().WithName("mesh")
	transport, identify, precheck, err := s.authentication()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.options.BindAddress)
	if err != nil {
		return fmt.Errorf("serve proxies at --mesh-bind-address: %w", err)
	}
	s.address.set(s.options.BindAddress, listener.Addr())
	log.Info("serving proxies", "address", listener.Addr().String())
	return server.NewServer(server.Options{
		Store: s.store, Identify: identify, Precheck: precheck, Limits: s.options.Limits, Namespaced: !s.where.IsUniversal(), Log: log,
	}).Serve(ctx, listener, transport)
}

// authentication returns the transport credentials, how proxies are authenticated, and what is checked before.
func (s *xdsServer) authentication() (transport credentials.TransportCredentials, identify, precheck server.Identifier, err error) {
	if s.options.Insecure {
		return insecure.NewCredentials(), server.Insecure, server.Insecure, nil
	}
	transport, err = server.Transport(s.options.CertFile, s.options.KeyFile, s.options.ClientCAFile, s.manager.GetLogger())
	if err != nil {
		return nil, nil, nil, err
	}
	if s.where.IsUniversal() {
		return transport, server.ByCertificate(nil), server.ByCertificate(nil), nil
	}
	clientset, err := kubernetes.NewForConfigAndClient(s.manager.GetConfig(), s.manager.GetHTTPClient())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("create a client for token reviews: %w", err)
	}
	tokens := server.NewTokens(clientset.AuthenticationV1().TokenReviews(), s.pod, s.options.Limits.TokenReviews)
	tokens.TrustIssuer(ownToken(s.manager.GetConfig()))
	return transport, server.ByCertificate(tokens.Identify), server.ByCertificate(tokens.Precheck), nil
}

// ownToken is the operator's own token, whose issuer is that of proxies, or empty.
func ownToken(config *rest.Config) string {
	if config.BearerTokenFile == "" {
		return config.BearerToken
	}
	token, err := os.ReadFile(config.BearerTokenFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(token))
}

// pod returns the pod of a proxy's Dataplane, or nil.
func (s *xdsServer) pod(id model.ProxyID) *metav1.OwnerReference {
	var dataplane kumav1alpha1.Dataplane
	err := s.manager.GetClient().Get(context.Background(), client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, &dataplane)
	if err != nil || desired.MeshOf(&dataplane) != id.Mesh {
		return nil
	}
	owner := metav1.GetControllerOf(&dataplane)
	if owner == nil || owner.APIVersion != "v1" || owner.Kind != "Pod" {
		return nil
	}
	return owner
}

package meshservice

import (
	"context"
	"fmt"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/server"
)

// identity returns the transport credentials, and how proxies are authenticated.
func (s *proxyServer) identity() (credentials.TransportCredentials, server.Identifier, error) {
	if s.options.Insecure {
		return insecure.NewCredentials(), server.Insecure{}, nil
	}
	transport, err := server.Transport(s.options.CertFile, s.options.KeyFile, s.options.ClientCAFile, s.manager.GetLogger())
	if err != nil {
		return nil, nil, err
	}
	if s.where.IsUniversal() {
		return transport, server.Certificates{}, nil
	}
	clientset, err := kubernetes.NewForConfigAndClient(s.manager.GetConfig(), s.manager.GetHTTPClient())
	if err != nil {
		return nil, nil, fmt.Errorf("create a client for token reviews: %w", err)
	}
	return transport, server.CertificateOrToken{Tokens: server.NewTokens(clientset.AuthenticationV1().TokenReviews(), s.pod)}, nil
}

// pod returns the pod of a proxy's Dataplane.
func (s *proxyServer) pod(id model.ProxyID) (server.Pod, bool) {
	var dataplane kumav1alpha1.Dataplane
	err := s.manager.GetClient().Get(context.Background(), client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, &dataplane)
	if err != nil || desired.MeshOf(&dataplane) != id.Mesh {
		return server.Pod{}, false
	}
	owner := metav1.GetControllerOf(&dataplane)
	if owner == nil || owner.APIVersion != "v1" || owner.Kind != "Pod" {
		return server.Pod{}, false
	}
	return server.Pod{Name: owner.Name, UID: owner.UID}, true
}

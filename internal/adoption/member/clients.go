// Package member connects the hub to the clusters that have joined: join, unjoin, clients, credentials and health.
package member

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Clients are the connections to the clusters that have joined.
type Clients struct {
	secrets client.Reader
	limits  Limits
	// WrapTransport, if set, wraps the transport of requests to clusters, as it does for those to the hub.
	WrapTransport transport.WrapperFunc
	// OnEvent is called with the labels of every managed object in a cluster that is created, updated or deleted.
	OnEvent func(cluster string, labels map[string]string)
	// Rechecks are the Works of clusters that can be reached again.
	Rechecks Rechecks

	mu      sync.Mutex
	clients map[string]*Client
}

func NewClients(secrets client.Reader, limits Limits) *Clients {
	return &Clients{secrets: secrets, limits: limits, clients: map[string]*Client{}}
}

// Connect connects to a cluster, or finds the connection that there is.
func (m *Clients) Connect(ctx context.Context, c *clusterv1alpha1.Cluster) (*Client, error) {
	if err := checkSupported(c); err != nil {
		return nil, err
	}
	if c.Spec.APIEndpoint == "" {
		return nil, fmt.Errorf("spec.apiEndpoint of Cluster %s is missing: join it with `fairlead join %s`", c.Name, c.Name)
	}
	secret := &corev1.Secret{}
	if c.Spec.SecretRef == nil {
		return nil, fmt.Errorf("spec.secretRef of Cluster %s is missing: join it with `fairlead join %s`", c.Name, c.Name)
	}
	if c.Spec.SecretRef.Namespace != model.SecretNamespace {
		// A user who may write Clusters could otherwise have any Secret sent to any server.
		return nil, fmt.Errorf("spec.secretRef.namespace of Cluster %s is %s: only Secrets in %s are used", c.Name, c.Spec.SecretRef.Namespace, model.SecretNamespace)
	}
	key := client.ObjectKey{Namespace: c.Spec.SecretRef.Namespace, Name: c.Spec.SecretRef.Name}
	if err := m.secrets.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("get the Secret that cluster %s is reached with: %w", c.Name, err)
	}
	made := c.Spec.APIEndpoint + " " + string(secret.UID) + " " + secret.ResourceVersion
	before := m.Get(c.Name)
	if before != nil && before.source == made {
		return before, nil
	}
	access := restConfig(c, secret, m.limits)
	access.WrapTransport = transport.Wrappers(m.WrapTransport, limitAnswers(c.Name))
	// Other requests to an API server that does not respond take longer, and fail with less clear errors.
	if _, err := checkServing(ctx, access); err != nil {
		return nil, err
	}
	connection, err := newClient(c.Name, access, func(labels map[string]string) { m.OnEvent(c.Name, labels) })
	if err != nil {
		return nil, err
	}
	connection.source = made
	if before != nil {
		before.Stop()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients[c.Name] = connection
	return connection, nil
}

// restConfig is the client configuration for a cluster, with the token in its Secret.
func restConfig(c *clusterv1alpha1.Cluster, secret *corev1.Secret, limits Limits) *rest.Config {
	host := c.Spec.APIEndpoint
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	return &rest.Config{
		Host: host, BearerToken: string(secret.Data[secretToken]),
		TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data[secretAuthority]},
		QPS:             limits.QPS, Burst: limits.Burst, UserAgent: "fairlead",
	}
}

// Get finds the connection to a cluster, nil if there is none.
func (m *Clients) Get(name string) *Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clients[name]
}

func (m *Clients) Disconnect(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.clients[name]; known != nil {
		known.Stop()
		delete(m.clients, name)
	}
}

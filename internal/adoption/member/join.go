package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Join makes a cluster a member of the hub. It can be called again: existing objects stay.
func Join(ctx context.Context, hub client.Client, hubID, name string, config *rest.Config) error {
	if err := validateJoin(name, config); err != nil {
		return err
	}
	member, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	return join(ctx, hub, member, hubID, name, config)
}

func join(ctx context.Context, hub, member client.Client, hubID, name string, config *rest.Config) error {
	system := &corev1.Namespace{}
	if err := member.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return fmt.Errorf("get the ID of the cluster: %w", err)
	}
	if string(system.UID) == hubID {
		return fmt.Errorf("this cluster is the hub itself (namespace %s of both has UID %s), and a hub cannot be its own member: "+
			"give the kubeconfig of another cluster", metav1.NamespaceSystem, hubID)
	}
	if err := checkNotJoined(ctx, hub, name, string(system.UID)); err != nil {
		return err
	}
	account := accountName(hubID)
	if err := createRBAC(ctx, member, account); err != nil {
		return err
	}
	token, err := requestToken(ctx, member, account)
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("read the certificate authority of the cluster: %w", err)
	}
	return createCluster(ctx, hub, name, string(system.UID), config, account, token)
}

// maxClusterName leaves room for the prefix of the execution namespace.
const maxClusterName = 63 - len(model.ExecutionPrefix)

// validateJoin rejects names and kubeconfigs with which a later step would fail.
func validateJoin(name string, member *rest.Config) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be the name of a cluster: %s", name, problems[0])
	}
	if len(name) > maxClusterName {
		return fmt.Errorf("%q cannot be the name of a cluster: use at most %d characters, because of namespace %s", name, maxClusterName, model.ExecutionNamespace("NAME"))
	}
	switch {
	case member.Insecure:
		return errors.New("the kubeconfig has insecure-skip-tls-verify, which the hub does not do: give its certificate-authority instead")
	case member.ServerName != "":
		return errors.New("the kubeconfig has a tls-server-name, which the hub does not use: give a server whose certificate is for its address")
	case member.Proxy != nil:
		return errors.New("the kubeconfig has a proxy-url, which the hub does not use: give a server that the hub can reach")
	}
	return nil
}

// accountName is the ServiceAccount of a hub in a cluster.
func accountName(hubID string) string { return "hub-" + model.Digest(hubID) }

// checkNotJoined refuses a cluster that has joined under another name, and a name that another cluster has.
func checkNotJoined(ctx context.Context, hub client.Client, name, id string) error {
	var all clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &all); err != nil {
		return fmt.Errorf("list the clusters that have joined: %w", err)
	}
	for _, c := range all.Items {
		switch {
		case c.Spec.ID == id && c.Name != name:
			return fmt.Errorf("this cluster has joined as %s already: `fairlead unjoin %s` first, or go on with that name", c.Name, c.Name)
		case c.Spec.ID != id && c.Name == name:
			return fmt.Errorf("another cluster has joined as %s: choose another name, or `fairlead unjoin %s` first", name, name)
		}
	}
	return nil
}

// createCluster creates the Cluster, its Secret and its namespaces on the hub.
func createCluster(ctx context.Context, hub client.Client, name, id string, member *rest.Config, account string, token authenticationv1.TokenRequestStatus) error {
	for _, namespace := range []string{model.SecretNamespace, model.ExecutionNamespace(name)} {
		if err := ensureNamespace(ctx, hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return fmt.Errorf("create namespace %s on the hub: %w", namespace, err)
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: model.SecretNamespace, Name: name},
		Data:       map[string][]byte{secretAuthority: member.CAData},
	}
	storeToken(secret, account, token, time.Now())
	err := hub.Create(ctx, secret, client.FieldOwner(model.FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		err = hub.Update(ctx, secret, client.FieldOwner(model.FieldOwner))
	}
	if err != nil {
		return fmt.Errorf("write Secret %s/%s on the hub: %w", model.SecretNamespace, name, err)
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err = controllerutil.CreateOrUpdate(ctx, client.WithFieldOwner(hub, model.FieldOwner), cluster, func() error {
		if cluster.UID == "" {
			cluster.Finalizers = []string{model.FinalizerCluster}
			cluster.Spec = clusterv1alpha1.ClusterSpec{
				ID: id, SyncMode: "Push", SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: model.SecretNamespace, Name: name},
			}
		}
		cluster.Spec.APIEndpoint = member.Host
		return nil
	})
	if err != nil {
		return fmt.Errorf("write Cluster %s on the hub: %w", name, err)
	}
	return nil
}

// How long to wait for a namespace that is being deleted, because a cluster of the same name has just left, and how often to look.
const (
	namespaceTimeout  = time.Minute
	namespaceInterval = 200 * time.Millisecond
)

// ensureNamespace creates a namespace that does not exist, and waits for one that is being deleted.
func ensureNamespace(ctx context.Context, c client.Client, namespace *corev1.Namespace) error {
	isDeleting := false
	err := wait.PollUntilContextTimeout(ctx, namespaceInterval, namespaceTimeout, true, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, namespace.DeepCopy(), client.FieldOwner(model.FieldOwner))
		if !apierrors.IsAlreadyExists(err) {
			return true, err
		}
		have := &corev1.Namespace{}
		err = c.Get(ctx, client.ObjectKeyFromObject(namespace), have)
		isDeleting = err == nil && have.DeletionTimestamp != nil
		return err == nil && !isDeleting, client.IgnoreNotFound(err)
	})
	if isDeleting && wait.Interrupted(err) {
		return fmt.Errorf("the namespace is still being deleted: see its status for what is left, and run the command again: %w", err)
	}
	return err
}

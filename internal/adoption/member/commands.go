package member

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// ConnectByName connects a command to a cluster that has joined.
func ConnectByName(ctx context.Context, hub client.Reader, name string) (*Client, error) {
	var c clusterv1alpha1.Cluster
	if err := hub.Get(ctx, client.ObjectKey{Name: name}, &c); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no cluster %s has joined the hub: `fairlead clusters` lists those that have", name)
	} else if err != nil {
		return nil, fmt.Errorf("get Cluster %s: %w", name, err)
	}
	return NewCommandClients(hub).ConnectForCommand(ctx, &c)
}

// NewCommandClients are the connections of a command. They have no rate limit, because a command makes few requests at once.
func NewCommandClients(hub client.Reader) *Clients {
	return NewClients(hub, Limits{QPS: -1})
}

// ConnectForCommand connects to a cluster, with an error for users of the command.
func (m *Clients) ConnectForCommand(ctx context.Context, c *clusterv1alpha1.Cluster) (*Client, error) {
	connection, err := m.Connect(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cluster %s cannot be reached at %s: %w", c.Name, c.Spec.APIEndpoint, err)
	}
	return connection, nil
}

// pageSize is how many objects are asked for at once.
const pageSize = 500

func (m *Client) List(ctx context.Context, mapping *meta.RESTMapping, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(mapping.GroupVersionKind.Kind + "List"))
		err := m.API.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(pageSize), client.Continue(next))
		if err != nil {
			return nil, m.requestError("list "+mapping.Resource.Resource, err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			if item.GroupVersionKind() != mapping.GroupVersionKind || namespace != "" && item.GetNamespace() != namespace {
				return nil, m.requestError("list "+mapping.Resource.Resource, answerError(item))
			}
			all = append(all, item)
		}
		if next = list.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// GetNamed gets one object, whose namespace counts if its kind has namespaces.
func (m *Client) GetNamed(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	like := &unstructured.Unstructured{}
	like.SetGroupVersionKind(mapping.GroupVersionKind)
	like.SetName(name)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		like.SetNamespace(namespace)
	}
	live, err := m.Get(ctx, like)
	switch {
	case err != nil:
		return nil, m.requestError(fmt.Sprintf("get %s %s", like.GetKind(), model.NameOf(like)), err)
	case live == nil:
		return nil, fmt.Errorf("%s %s does not exist in cluster %s", like.GetKind(), model.NameOf(like), m.Name)
	}
	return live, nil
}

// requestError is the error of a request of a command, with the rule that is missing if it was forbidden.
func (m *Client) requestError(request string, err error) error {
	if rule := missingRule(err); rule != "" {
		return fmt.Errorf(`%s in cluster %s: %w: add the rule %s to a ClusterRole of the cluster with the label %s: "true"`, request, m.Name, err, rule, model.LabelMemberRole)
	}
	return fmt.Errorf("%s in cluster %s: %w", request, m.Name, err)
}

// Dependencies gets the objects that the pods of workloads require, as far as they exist.
func (m *Client) Dependencies(ctx context.Context, workloads []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	wanted := map[model.TemplateKey]bool{}
	for _, w := range workloads {
		for _, key := range manifest.Dependencies(w) {
			wanted[key] = true
		}
	}
	var mu sync.Mutex
	var all []*unstructured.Unstructured
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(model.MaxConcurrent)
	for key := range wanted {
		group.Go(func() error {
			like := &unstructured.Unstructured{}
			like.SetGroupVersionKind(key.Kind)
			like.SetNamespace(key.Namespace)
			like.SetName(key.Name)
			live, err := m.Get(ctx, like)
			if err != nil {
				return fmt.Errorf("get %s %s in cluster %s: %w", key.Kind.Kind, model.NameOf(like), m.Name, err)
			}
			if live != nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, live)
			}
			return nil
		})
	}
	err := group.Wait()
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(model.NameOf(a), model.NameOf(b)))
	})
	return all, err
}

package adoption

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
)

// visit connects a command to a cluster that has joined.
func visit(ctx context.Context, hub client.Reader, name string) (*member, error) {
	var c clusterv1alpha1.Cluster
	if err := hub.Get(ctx, client.ObjectKey{Name: name}, &c); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no cluster %s has joined the hub: `fairlead clusters` lists those that have", name)
	} else if err != nil {
		return nil, fmt.Errorf("get Cluster %s: %w", name, err)
	}
	return visitors(hub).call(ctx, &c)
}

// visitors are the connections of a command. It asks only a few things at once, which is limit enough.
func visitors(hub client.Reader) *members {
	return &members{secrets: hub, limits: Limits{QPS: -1}, known: map[string]*member{}}
}

// call connects to a cluster, if it answers.
func (m *members) call(ctx context.Context, c *clusterv1alpha1.Cluster) (*member, error) {
	connection, err := m.reach(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cluster %s cannot be reached at %s: %w", c.Name, c.Spec.APIEndpoint, err)
	}
	return connection, nil
}

// pageSize is how many objects are asked for at once.
const pageSize = 500

func (m *member) list(ctx context.Context, mapping *meta.RESTMapping, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(mapping.GroupVersionKind.Kind + "List"))
		err := m.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(pageSize), client.Continue(next))
		if rule := missingRule(err); rule != "" {
			return nil, fmt.Errorf(`list %s in cluster %s: %w: add the rule %s to a ClusterRole there with the label %s: "true"`, mapping.Resource.Resource, m.name, err, rule, LabelMemberRole)
		}
		if err != nil {
			return nil, fmt.Errorf("list %s in cluster %s: %w", mapping.Resource.Resource, m.name, err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		if next = list.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// dependencies are what the pods of workloads cannot start without, as far as it is there.
func (m *member) dependencies(ctx context.Context, workloads []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	wanted := map[templateKey]bool{}
	for _, w := range workloads {
		keys, err := needs(w)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			wanted[key] = true
		}
	}
	var mu sync.Mutex
	var all []*unstructured.Unstructured
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for key := range wanted {
		group.Go(func() error {
			like := &unstructured.Unstructured{}
			like.SetGroupVersionKind(key.kind)
			like.SetNamespace(key.Namespace)
			like.SetName(key.Name)
			live, err := m.find(ctx, like)
			if err != nil {
				return fmt.Errorf("get %s %s in cluster %s: %w", key.kind.Kind, nameOf(like), m.name, err)
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
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(nameOf(a), nameOf(b)))
	})
	return all, err
}

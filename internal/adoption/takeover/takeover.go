// Package takeover drafts templates and policies for what a cluster runs already.
package takeover

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// DefaultKinds are the kinds that are adopted by default. Jobs are not among them: one that its cluster removes between the draft
// and the takeover would run again.
func DefaultKinds() []string {
	return []string{
		"deployments", "statefulsets", "daemonsets", "cronjobs", "services", "ingresses", "horizontalpodautoscalers",
		"poddisruptionbudgets", "networkpolicies",
	}
}

// Takeover selects the objects of a cluster that the hub is to manage.
type Takeover struct {
	Cluster, Namespace string
	// Named are the objects, by name. If there are none, they are selected by Kinds and Selector.
	Named []Name
	// Kinds as users write them, and how they are resolved.
	Kinds     []string
	KindNamed func(meta.RESTMapper, string) (*meta.RESTMapping, error)
	Selector  labels.Selector
	// WithDependencies includes the ConfigMaps, Secrets and other objects that pods require.
	WithDependencies bool
	// Policy is the name of the PropagationPolicy to write, and of the ClusterPropagationPolicy for cluster-scoped objects.
	Policy string
}

// Name is the kind of an object, as users write it, and its name.
type Name struct{ Kind, Name string }

// Draft reads the cluster and the hub, and writes nothing.
func (a Takeover) Draft(ctx context.Context, hub client.Client) (Draft, error) {
	m, err := member.ConnectByName(ctx, hub, a.Cluster)
	if err != nil {
		return Draft{}, err
	}
	defer m.Stop()
	discover, err := discovery.NewDiscoveryClientForConfig(m.Config)
	if err != nil {
		return Draft{}, fmt.Errorf("connect to cluster %s: %w", m.Name, err)
	}
	cached := memory.NewMemCacheClient(discover)
	return a.draftFrom(ctx, hub, m, restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil))
}

// draftFrom drafts from a cluster that is connected, and whose kinds the mapper knows.
func (a Takeover) draftFrom(ctx context.Context, hub client.Reader, m *member.Client, mapper meta.RESTMapper) (Draft, error) {
	id, err := model.HubID(ctx, hub)
	if err != nil {
		return Draft{}, err
	}
	found, err := a.findObjects(ctx, m, mapper)
	if err != nil {
		return Draft{}, err
	}
	if len(found) == 0 && len(a.Named) == 0 {
		if err := requireNamespace(ctx, m, a.Namespace); err != nil {
			return Draft{}, err
		}
	}
	has, err := listPresent(ctx, hub, found)
	if err != nil {
		return Draft{}, err
	}
	d := newDraft(a.Cluster, id, found, has)
	for _, namespace := range []string{a.Namespace, ""} {
		if wanted := d.policyFor(a.Cluster, namespace, a.Policy); wanted != nil {
			merged, err := a.mergePolicy(ctx, hub, d, wanted)
			if err != nil {
				return Draft{}, err
			}
			d.Policies = append(d.Policies, merged)
		}
	}
	if len(d.Policies) == 0 || !d.Policies[0].isNamespaced() {
		return d, nil
	}
	err = hub.Get(ctx, client.ObjectKey{Name: a.Namespace}, model.NewMetadata(corev1.SchemeGroupVersion.WithKind("Namespace")))
	d.NewNamespace = apierrors.IsNotFound(err)
	return d, client.IgnoreNotFound(err)
}

// requireNamespace is an error if the cluster does not have a namespace. A hub that may not read namespaces cannot tell.
func requireNamespace(ctx context.Context, m *member.Client, name string) error {
	err := m.API.Get(ctx, client.ObjectKey{Name: name}, model.NewMetadata(corev1.SchemeGroupVersion.WithKind("Namespace")))
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s does not exist in cluster %s: name an existing one with -n", name, m.Name)
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("get namespace %s of cluster %s: %w", name, m.Name, err)
	}
	return nil
}

// findObjects lists the selected objects and their dependencies.
func (a Takeover) findObjects(ctx context.Context, m *member.Client, mapper meta.RESTMapper) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	seen := map[model.TemplateKey]bool{}
	add := func(o *unstructured.Unstructured) {
		if key := model.KeyOf(o); !seen[key] {
			seen[key] = true
			all = append(all, o)
		}
	}
	kinds := a.Kinds
	if len(a.Named) > 0 {
		kinds = nil
	}
	for _, named := range a.Named {
		mapping, err := a.mappingOf(mapper, m.Name, named.Kind)
		if err != nil {
			return nil, err
		}
		o, err := m.GetNamed(ctx, mapping, a.Namespace, named.Name)
		if err != nil {
			return nil, err
		}
		add(o)
	}
	for _, name := range kinds {
		mapping, err := a.mappingOf(mapper, m.Name, name)
		if err != nil {
			return nil, err
		}
		if kind := mapping.Resource.Resource; mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			return nil, fmt.Errorf("%s are cluster-scoped, and adopted by name only: name them, such as `fairlead adopt %s NAME --cluster %s`", kind, kind, m.Name)
		}
		found, err := m.List(ctx, mapping, a.Namespace, a.Selector)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			add(o)
		}
	}
	if !a.WithDependencies {
		return all, nil
	}
	needed, err := m.Dependencies(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, o := range needed {
		add(o)
	}
	return all, nil
}

func (a Takeover) mappingOf(mapper meta.RESTMapper, cluster, kind string) (*meta.RESTMapping, error) {
	mapping, err := a.KindNamed(mapper, kind)
	if err != nil {
		return nil, fmt.Errorf("cluster %s has no kind %q: %w", cluster, kind, err)
	}
	return mapping, nil
}

// listPresent lists the resources of the hub of the same kinds, in the same namespaces.
func listPresent(ctx context.Context, hub client.Reader, like []*unstructured.Unstructured) (present, error) {
	has, seen := present{}, map[model.TemplateKey]bool{}
	for _, o := range like {
		kind := o.GroupVersionKind()
		place := model.TemplateKey{Kind: kind, ObjectKey: client.ObjectKey{Namespace: o.GetNamespace()}}
		if seen[place] {
			continue
		}
		seen[place] = true
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := hub.List(ctx, list, client.InNamespace(o.GetNamespace()))
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("the hub has no kind %s in %s: install its CRD on the hub, or name other kinds with --kind", kind.Kind, kind.GroupVersion())
		}
		if err != nil {
			return nil, fmt.Errorf("list %s on the hub: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := model.ObjectOf(o)
			object.Name = list.Items[i].Name
			has[object] = list.Items[i].Labels
		}
	}
	return has, nil
}

// mergePolicy adds to the existing policy, if that was created for the same cluster.
func (a Takeover) mergePolicy(ctx context.Context, hub client.Reader, d Draft, wanted client.Object) (Policy, error) {
	named := Policy{Object: wanted}
	have, err := getPolicy(ctx, hub, wanted)
	switch {
	case apierrors.IsNotFound(err):
		return named, nil
	case meta.IsNoMatchError(err):
		return Policy{}, errors.New("the hub has no PropagationPolicies: install its CRDs with `fairlead crds install`")
	case err != nil:
		return Policy{}, fmt.Errorf("get %s: %w", named, err)
	case have.GetLabels()[LabelAdoptedFrom] != a.Cluster:
		return Policy{}, fmt.Errorf("%s exists already, and was not created for resources adopted from cluster %s: give another name with --policy", named, a.Cluster)
	}
	spec := specOf(have)
	before := len(spec.ResourceSelectors)
	spec.ResourceSelectors = d.selectors(a.Cluster, named.isNamespaced(), spec.ResourceSelectors)
	return Policy{Object: have, written: before == len(spec.ResourceSelectors)}, nil
}

package installer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// Releases are the states of the releases of a name, in whatever namespaces they were installed.
//
// Whoever may write Secrets in a namespace can make what looks like the record of a release. Records count in namespaces where
// only administrators of the cluster can have had it installed: those of IstioRevisions, those that cluster-scoped objects of
// the release name, and those that such a release replaces.
func (o *Objects) Releases(ctx context.Context, name string) ([]release.State, error) {
	all, err := o.records(ctx, name)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	trusted, err := o.namespacesOfRevisions(ctx)
	if err != nil {
		return nil, err
	}
	if !trusted.HasAll(namespacesOf(all)...) {
		named, err := o.NamespacesInObjects(ctx, name)
		if err != nil {
			return nil, err
		}
		if trusted, err = o.withReplaced(ctx, trusted.Union(named), all); err != nil {
			return nil, err
		}
	}
	latest := map[string]release.State{}
	for i := range all {
		state := release.StateOf(all[i : i+1])
		if trusted.Has(state.Namespace) && state.Version > latest[state.Namespace].Version {
			latest[state.Namespace] = state
		}
	}
	return slices.SortedFunc(maps.Values(latest), byNamespace), nil
}

func byNamespace(a, b release.State) int { return strings.Compare(a.Namespace, b.Namespace) }

func namespacesOf(records []metav1.PartialObjectMetadata) []string {
	var namespaces []string
	for i := range records {
		namespaces = append(namespaces, records[i].Namespace)
	}
	return namespaces
}

// state is what the records of a release in a namespace say, whoever made them.
func (o *Objects) state(ctx context.Context, key types.NamespacedName) (release.State, error) {
	all, err := o.records(ctx, key.Name, client.InNamespace(key.Namespace))
	if state := release.StateOf(all); state.Exists {
		return state, err
	}
	return release.State{Name: key.Name, Namespace: key.Namespace}, err
}

func (o *Objects) namespacesOfRevisions(ctx context.Context) (sets.Set[string], error) {
	var list v1.IstioRevisionList
	if err := o.revisions.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list IstioRevisions: %w", err)
	}
	namespaces := sets.Set[string]{}
	for i := range list.Items {
		namespaces.Insert(list.Items[i].Spec.Namespace)
	}
	return namespaces, nil
}

// NamespacesInObjects are those that the cluster-scoped objects of a release are annotated with.
func (o *Objects) NamespacesInObjects(ctx context.Context, name string) (sets.Set[string], error) {
	namespaces := sets.Set[string]{}
	for _, kind := range o.clusterScoped {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := o.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %s for release %s: %w", kind.Kind, name, err)
		}
		for i := range list.Items {
			if of := release.Of(&list.Items[i]); of.Name == name {
				namespaces.Insert(of.Namespace)
			}
		}
	}
	return namespaces, nil
}

// withReplaced adds the namespaces that trusted records replace. Objects that a release takes over no longer name the one that
// they are from, which still has to be uninstalled. A namespace that was created since is somebody else's.
func (o *Objects) withReplaced(ctx context.Context, trusted sets.Set[string], records []metav1.PartialObjectMetadata) (sets.Set[string], error) {
	for known := -1; known < trusted.Len(); {
		known = trusted.Len()
		for i := range records {
			if !trusted.Has(records[i].Namespace) {
				continue
			}
			for namespace, uid := range release.ReplacedBy(&records[i]) {
				is, err := o.namespaceUID(ctx, namespace)
				if err != nil {
					return nil, err
				}
				// Earlier versions have not recorded which namespace of that name it was.
				if is != "" && (uid == is || uid == "") {
					trusted.Insert(namespace)
				}
			}
		}
	}
	return trusted, nil
}

// namespaceUID is empty if there is no such namespace.
func (o *Objects) namespaceUID(ctx context.Context, name string) (types.UID, error) {
	namespace, err := o.get(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKey{Name: name})
	if err != nil || namespace == nil {
		return "", err
	}
	return namespace.UID, nil
}

package model

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/kube"
)

func BindingRequests(_ context.Context, work client.Object) []reconcile.Request {
	path := bindingPathOf(work)
	if path == "" {
		return nil
	}
	slash := strings.LastIndex(path, "/")
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: path[:max(slash, 0)], Name: path[slash+1:]}}}
}

// IsTaken holds for a template that a policy takes, or that another template requires.
func IsTaken(binding *Binding) bool {
	return ClaimOf(binding) != (PolicyKey{}) || len(binding.Spec.RequiredBy) > 0
}

// Targets are the clusters of a template: those of its placement, and those of the templates that require it.
func Targets(binding *Binding) []workv1alpha2.TargetCluster {
	all := slices.Clone(binding.Spec.Clusters)
	for _, r := range binding.Spec.RequiredBy {
		for _, c := range r.Clusters {
			if !HasCluster(all, c.Name) {
				all = append(all, c)
			}
		}
	}
	return all
}

// HasCluster tells whether a cluster is one of the targets.
func HasCluster(targets []workv1alpha2.TargetCluster, name string) bool {
	return slices.ContainsFunc(targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == name })
}

// Binding is a ResourceBinding, or a ClusterResourceBinding for what is in no namespace.
type Binding struct {
	client.Object
	Spec   *workv1alpha2.ResourceBindingSpec
	Status *workv1alpha2.ResourceBindingStatus
}

// NewBinding is an empty one.
func NewBinding(key client.ObjectKey) *Binding {
	metadata := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	if key.Namespace == "" {
		return AsBinding(&workv1alpha2.ClusterResourceBinding{ObjectMeta: metadata})
	}
	return AsBinding(&workv1alpha2.ResourceBinding{ObjectMeta: metadata})
}

// AsBinding is the binding that an object is.
func AsBinding(object client.Object) *Binding {
	switch b := object.(type) {
	case *workv1alpha2.ResourceBinding:
		return &Binding{b, &b.Spec, &b.Status}
	case *workv1alpha2.ClusterResourceBinding:
		return &Binding{b, &b.Spec, &b.Status}
	}
	return nil
}

func (b *Binding) Copy() *Binding { return AsBinding(b.DeepCopyObject().(client.Object)) }

// Kind of the object.
func (b *Binding) Kind() string {
	if b.GetNamespace() == "" {
		return workv1alpha2.ClusterResourceBindingKind
	}
	return workv1alpha2.ResourceBindingKind
}

func (b *Binding) String() string { return b.Kind() + " " + b.Path() }

// Path is the namespace, if any, and the name.
func (b *Binding) Path() string { return BindingPath(client.ObjectKeyFromObject(b.Object)) }

// HasOwnName tells whether the name of a binding is one by which it is found from its template.
func (b *Binding) HasOwnName() bool {
	return slices.Contains(TemplateKeyOf(b).Bindings(), client.ObjectKeyFromObject(b.Object))
}

// BindingPath is the path of the binding with a key.
func BindingPath(key client.ObjectKey) string { return strings.TrimPrefix(key.String(), "/") }

// GetBinding reads one; nil if there is none.
func GetBinding(ctx context.Context, reader client.Reader, key client.ObjectKey) (*Binding, error) {
	object, err := kube.GetIfExists(ctx, reader, key, NewBinding(key).Object)
	return AsBinding(object), err
}

// IsRequiredBy holds for a binding whose template one of the others requires.
func IsRequiredBy(b *Binding, others map[string]bool) bool {
	return slices.ContainsFunc(b.Spec.RequiredBy, func(by workv1alpha2.BindingSnapshot) bool {
		return others[strings.TrimPrefix(by.Namespace+"/"+by.Name, "/")]
	})
}

package adoption

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// binding is a ResourceBinding, or a ClusterResourceBinding for what is in no namespace.
type binding struct {
	client.Object
	spec   *workv1alpha2.ResourceBindingSpec
	status *workv1alpha2.ResourceBindingStatus
}

// newBinding is an empty one.
func newBinding(namespace, name string) *binding {
	metadata := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if namespace == "" {
		return bindingIn(&workv1alpha2.ClusterResourceBinding{ObjectMeta: metadata})
	}
	return bindingIn(&workv1alpha2.ResourceBinding{ObjectMeta: metadata})
}

// bindingIn is the binding that an object is.
func bindingIn(object client.Object) *binding {
	switch b := object.(type) {
	case *workv1alpha2.ResourceBinding:
		return &binding{b, &b.Spec, &b.Status}
	case *workv1alpha2.ClusterResourceBinding:
		return &binding{b, &b.Spec, &b.Status}
	}
	return nil
}

func (b *binding) copy() *binding { return bindingIn(b.DeepCopyObject().(client.Object)) }

// kind of the object.
func (b *binding) kind() string {
	if b.GetNamespace() == "" {
		return workv1alpha2.ClusterResourceBindingKind
	}
	return workv1alpha2.ResourceBindingKind
}

func (b *binding) String() string { return b.kind() + " " + b.path() }

// path is where it is, as people write it.
func (b *binding) path() string {
	if namespace := b.GetNamespace(); namespace != "" {
		return namespace + "/" + b.GetName()
	}
	return b.GetName()
}

// getBinding reads one; nil if there is none.
func getBinding(ctx context.Context, reader client.Reader, namespace, name string) (*binding, error) {
	b := newBinding(namespace, name)
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b.Object)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get %s: %w", b, err)
	}
	if err != nil {
		return nil, nil
	}
	return b, nil
}

// writeStatus writes the status of a binding, if it says anything new.
func writeStatus(ctx context.Context, c client.Client, b *binding, status workv1alpha2.ResourceBindingStatus) error {
	if equality.Semantic.DeepEqual(*b.status, status) {
		return nil
	}
	now := b.copy()
	*now.status = status
	err := c.Status().Patch(ctx, now.Object, client.MergeFrom(b.Object), client.FieldOwner(FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of %s: %w", b, err)
	}
	return nil
}

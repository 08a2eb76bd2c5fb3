package model

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// Template is the part of a resource of the hub that policies select by.
type Template struct {
	APIVersion, Kind, Namespace, Name string
	Labels                            map[string]string
}

func (t Template) Key() TemplateKey {
	return TemplateKey{schema.FromAPIVersionAndKind(t.APIVersion, t.Kind), client.ObjectKey{Namespace: t.Namespace, Name: t.Name}}
}

// Object names the template.
func (t Template) Object() passage.Object {
	return passage.Object{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
}

// TemplateKey names a resource of the hub.
type TemplateKey struct {
	Kind schema.GroupVersionKind
	client.ObjectKey
}

// Binding is the key of the binding that Fairlead makes for the resource. One that Karmada has made has another name: see FindBinding.
func (k TemplateKey) Binding() client.ObjectKey {
	return client.ObjectKey{Namespace: k.Namespace, Name: BindingName(k.Kind, k.Name)}
}

// Bindings are the keys that the binding of the resource may have, that of Binding first.
func (k TemplateKey) Bindings() []client.ObjectKey {
	var all []client.ObjectKey
	for _, name := range BindingNames(k.Kind, k.Name) {
		all = append(all, client.ObjectKey{Namespace: k.Namespace, Name: name})
	}
	return all
}

// NewBinding is the key under which the binding of the resource is created.
func (k TemplateKey) NewBinding(isTaken func(client.ObjectKey) bool) client.ObjectKey {
	all := k.Bindings()
	if isTaken(all[0]) {
		return all[1]
	}
	return all[0]
}

// ID is the ObjectID of the resource, in all versions of its kind.
func (k TemplateKey) ID() string { return Digest(k.Kind.Group, k.Kind.Kind, k.Namespace, k.Name) }

func ObjectOf(o *unstructured.Unstructured) passage.Object {
	return passage.Object{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

func TemplateOf(o client.Object) Template {
	kind := o.GetObjectKind().GroupVersionKind()
	return Template{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), Labels: o.GetLabels()}
}

func KeyOf(o client.Object) TemplateKey {
	return TemplateKey{o.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(o)}
}

func NewMetadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

func NameOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

func TemplateOfBinding(b *Binding) Template {
	r := b.Spec.Resource
	return Template{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// TemplateKeyOfWork is the key of the template that a Work was made from.
func TemplateKeyOfWork(work *workv1alpha1.Work) (TemplateKey, error) {
	manifest := &unstructured.Unstructured{}
	if len(work.Spec.Workload.Manifests) == 0 {
		return TemplateKey{}, fmt.Errorf("the manifest of Work %s/%s is missing", work.Namespace, work.Name)
	}
	if err := manifest.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw); err != nil {
		return TemplateKey{}, fmt.Errorf("read the manifest of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return KeyOf(manifest), nil
}

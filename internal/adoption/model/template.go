package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Binding is the key of the binding of the resource.
func (k TemplateKey) Binding() client.ObjectKey {
	return client.ObjectKey{Namespace: k.Namespace, Name: BindingName(k.Kind, k.Name)}
}

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

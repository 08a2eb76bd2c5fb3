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

func (t Template) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
}

// TemplateKey names a resource of the hub.
type TemplateKey struct {
	Kind schema.GroupVersionKind
	client.ObjectKey
}

func (k TemplateKey) Template(seen *metav1.PartialObjectMetadata) Template {
	return Template{APIVersion: k.Kind.GroupVersion().String(), Kind: k.Kind.Kind, Namespace: seen.Namespace, Name: seen.Name, Labels: seen.Labels}
}

func ObjectOf(o *unstructured.Unstructured) passage.Object {
	return passage.Object{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

func NewNamespace(name string) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	return namespace
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

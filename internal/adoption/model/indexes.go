package model

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// IndexObject is the index of Works by the ObjectID of their object, which is the value of LabelWork.
const IndexObject = "mark"

// IndexBinding is the index of Works by the namespace and name of their binding. A binding that is created again has the Works of
// the earlier one.
const IndexBinding = "binding"

func BindingIndexValues(work client.Object) []string {
	return []string{bindingPathOf(work)}
}

// ListWorks are the Works of a binding, by cluster. The path of the binding is its namespace, if any, and its name.
func ListWorks(ctx context.Context, reader client.Reader, binding string) (map[string]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := reader.List(ctx, &list, client.MatchingFields{IndexBinding: binding}); err != nil {
		return nil, fmt.Errorf("list the Works of binding %s: %w", binding, err)
	}
	works := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		work := &list.Items[i]
		if cluster, ok := ClusterOf(work.Namespace); ok && (works[cluster] == nil || work.Annotations[AnnotationBinding] != "") {
			works[cluster] = work
		}
	}
	return works, nil
}

// IndexTemplate is the index of bindings by the ID of their template.
const IndexTemplate = "template"

// TemplateIndexValues leaves out a binding that names a template of another namespace, or of the cluster from a namespace: such a
// binding is refused, and its author is not to choose which one is in force.
func TemplateIndexValues(object client.Object) []string {
	template := TemplateKeyOf(AsBinding(object))
	if template.Namespace != object.GetNamespace() {
		return nil
	}
	return []string{template.ID()}
}

// FindBinding finds the binding of a template, whatever its name; nil if there is none.
func FindBinding(ctx context.Context, reader client.Reader, template TemplateKey) (*Binding, error) {
	all, err := ListBindings(ctx, reader, template.Namespace, client.MatchingFields{IndexTemplate: template.ID()})
	if err != nil {
		return nil, err
	}
	var found *Binding
	for _, b := range all {
		found = PreferredBinding(found, b)
	}
	if found == nil {
		return nil, nil
	}
	return found.Copy(), nil
}

// PreferredBinding is which of two bindings of a template is in force: that with the name that Fairlead gives it. A may be nil.
func PreferredBinding(a, b *Binding) *Binding {
	own := TemplateKeyOf(b).Binding().Name
	if a == nil || b.GetName() == own || a.GetName() != own && b.GetName() < a.GetName() {
		return b
	}
	return a
}

// IndexRequiredBy is the index of bindings by the bindings that require their template.
const IndexRequiredBy = "requirer"

func RequiredByIndexValues(object client.Object) []string {
	var all []string
	for _, r := range AsBinding(object).Spec.RequiredBy {
		all = append(all, r.Namespace+"/"+r.Name)
	}
	return all
}

// ListDependencies are the bindings of the templates that the template of a binding requires.
func ListDependencies(ctx context.Context, reader client.Reader, by *Binding) ([]*Binding, error) {
	return ListBindings(ctx, reader, by.GetNamespace(), client.MatchingFields{IndexRequiredBy: by.GetNamespace() + "/" + by.GetName()})
}

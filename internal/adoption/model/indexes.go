package model

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IndexObject is the index of Works by the ObjectID of their object, which is the value of LabelWork.
const IndexObject = "mark"

// IndexBinding is the index of Works by the UID of their binding.
const IndexBinding = "binding"

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

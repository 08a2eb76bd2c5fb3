package model

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IndexObject is the index of Works by what is on what they have made.
const IndexObject = "mark"

// IndexBinding is the index of Works by the UID of their binding.
const IndexBinding = "binding"

// IndexRequiredBy is the index of bindings by those that need their resource.
const IndexRequiredBy = "requirer"

func RequiredByIndexValues(object client.Object) []string {
	var all []string
	for _, r := range AsBinding(object).Spec.RequiredBy {
		all = append(all, r.Namespace+"/"+r.Name)
	}
	return all
}

// ListDependencies are the bindings of what a resource needs.
func ListDependencies(ctx context.Context, reader client.Reader, by *Binding) ([]*Binding, error) {
	return ListBindings(ctx, reader, by.GetNamespace(), client.MatchingFields{IndexRequiredBy: by.GetNamespace() + "/" + by.GetName()})
}

package kind

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
)

// Registry is all kinds.
type Registry []Kind

// Find returns the kind of a resource.
func (registry Registry) Find(r connect.Resource) (Kind, error) {
	for _, k := range registry {
		if slices.Contains(k.GroupKinds(), r.Kind()) {
			return k, nil
		}
		if e, ok := k.(PolicyExplainer); ok && e.PartHint(r) != "" {
			return nil, console.UsageErrorf("no passage starts from a %s; to list the policies of its destinations, run `%s`", r.Kind().Kind, e.PartHint(r))
		}
	}
	return nil, console.UsageErrorf("no passage starts from %s; those that start one are %s", r.Kind().Kind, Names[Kind](registry))
}

// Names are the kinds that implement T.
func Names[T any](registry Registry) string {
	var kinds []schema.GroupKind
	for _, k := range registry {
		if _, ok := k.(T); ok {
			kinds = append(kinds, k.GroupKinds()...)
		}
	}
	var names []string
	for _, gk := range kinds {
		names = append(names, gk.Kind)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

package model

import (
	"testing"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

func TestOwnership(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		want   Ownership
	}{
		"no marks":                             {nil, Unmanaged},
		"a copied label":                       {map[string]string{LabelManaged: "true"}, Unmanaged},
		"ours":                                 {Identity{"h", "w"}.Labels(), ManagedHere},
		"copied from another object":           {Identity{"h", "x"}.Labels(), Unmanaged},
		"copied from an object of another hub": {Identity{"g", "x"}.Labels(), Unmanaged},
		"another hub's":                        {Identity{"g", "w"}.Labels(), ManagedByAnotherHub},
	} {
		t.Run(name, func(t *testing.T) {
			live := adoptiontest.Object(t, "ConfigMap v1")
			live.SetLabels(c.labels)
			if got := (Identity{"h", "w"}).OwnershipOf(live); got != c.want {
				t.Errorf("got %d", got)
			}
		})
	}
}

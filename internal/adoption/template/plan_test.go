package template

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A dependency that no policy takes is taken over only if all that require it are, whatever it was before.
func TestWithDependents(t *testing.T) {
	suspended := &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
	deployment := func(name string, resolution policyv1alpha1.ConflictResolution) *model.Binding {
		b := model.NewBinding("shop", name)
		b.Spec.ConflictResolution, b.Spec.Clusters = resolution, []workv1alpha2.TargetCluster{{Name: "west", Replicas: 3}}
		return b
	}
	overwrite, abort := policyv1alpha1.ConflictOverwrite, policyv1alpha1.ConflictAbort
	for name, c := range map[string]struct {
		was       policyv1alpha1.ConflictResolution
		by        policyv1alpha1.ConflictResolution
		others    []*model.Binding
		claimed   bool
		want      policyv1alpha1.ConflictResolution
		suspended bool
	}{
		"required by one that aborts":            {"", abort, nil, false, abort, false},
		"required by one that overwrites":        {"", overwrite, nil, false, overwrite, false},
		"from Abort to Overwrite":                {abort, overwrite, nil, false, overwrite, false},
		"from Overwrite to Abort":                {overwrite, abort, nil, false, abort, false},
		"another aborts":                         {overwrite, overwrite, []*model.Binding{deployment("other", abort)}, false, abort, false},
		"all overwrite":                          {abort, overwrite, []*model.Binding{deployment("other", overwrite)}, false, overwrite, false},
		"another is gone":                        {abort, overwrite, []*model.Binding{nil}, false, overwrite, false},
		"taken by a policy, which keeps its say": {abort, overwrite, nil, true, abort, false},
		"another is suspended": {abort, overwrite, []*model.Binding{func() *model.Binding {
			b := deployment("other", overwrite)
			b.Spec.Suspension = suspended
			return b
		}()}, false, overwrite, true},
	} {
		t.Run(name, func(t *testing.T) {
			dependency := NewDependency(model.Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, "u")
			by := deployment("by", c.by)
			if c.was != "" {
				dependency.Spec.ConflictResolution = c.was
				dependency.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "by"}}
			}
			for range c.others {
				dependency.Spec.RequiredBy = append(dependency.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: "other"})
			}
			if c.claimed {
				model.Claim(dependency, model.PolicyKey{Namespace: "shop", Name: "p"})
			}
			got := WithDependents(dependency, func(types.NamespacedName) *model.Binding { return c.others[0] }, by)
			if got.Spec.ConflictResolution != c.want || (got.Spec.Suspension != nil) != c.suspended {
				t.Errorf("got %s, %v", got.Spec.ConflictResolution, got.Spec.Suspension)
			}
			if n := len(got.Spec.RequiredBy); n != 1+len(c.others) || got.Spec.RequiredBy[0].Name != "by" || got.Spec.RequiredBy[0].Clusters[0] != (workv1alpha2.TargetCluster{Name: "west"}) {
				t.Errorf("required by %v", got.Spec.RequiredBy)
			}
		})
	}
}

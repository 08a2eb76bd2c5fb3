package template

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

func TestDesiredBinding(t *testing.T) {
	cart := model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
	members := []policy.Member{{Name: "west"}, {Name: "east"}}
	for name, c := range map[string]struct {
		change   func(*policy.Policy)
		replicas int32
		have     func(*model.Binding)
		// want is clusters, replicas, conflict resolution, whether it is suspended, preserved, and who requires it.
		want string
	}{
		"by default":    {nil, -1, nil, "[{east 0} {west 0}] 0 Abort false false []"},
		"to be taken":   {func(p *policy.Policy) { p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }, -1, nil, "[{east 0} {west 0}] 0 Overwrite false false []"},
		"paused":        {func(p *policy.Policy) { p.Paused = true }, -1, nil, "[{east 0} {west 0}] 0 Abort true false []"},
		"suspended":     {func(p *policy.Policy) { p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)} }, -1, nil, "[{east 0} {west 0}] 0 Abort true false []"},
		"not suspended": {func(p *policy.Policy) { p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(false)} }, -1, nil, "[{east 0} {west 0}] 0 Abort false false []"},
		"to be kept":    {func(p *policy.Policy) { p.Spec.PreserveResourcesOnDeletion = ptr.To(true) }, -1, nil, "[{east 0} {west 0}] 0 Abort false true []"},
		"in one cluster": {func(p *policy.Policy) {
			p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}
		}, -1, nil, "[{west 0}] 0 Abort false false []"},
		"divided": {func(p *policy.Policy) {
			p.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaScheduling{ReplicaSchedulingType: policyv1alpha1.ReplicasDivided}
		}, 3, nil, "[{east 2} {west 1}] 3 Abort false false []"},
		"required by another, and now taken": {nil, -1, func(b *model.Binding) {
			b.Spec.RequiredBy, b.Spec.PreserveResourcesOnDeletion = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "pay"}}, ptr.To(true)
		}, "[{east 0} {west 0}] 0 Abort false false [{shop pay []}]"},
		"taken over from another policy": {nil, -1, func(b *model.Binding) {
			model.Claim(b, model.PolicyKey{Name: "of-cluster"})
			b.Spec.ConflictResolution, b.Spec.Clusters = policyv1alpha1.ConflictOverwrite, []workv1alpha2.TargetCluster{{Name: "north"}}
		}, "[{east 0} {west 0}] 0 Abort false false []"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &policy.Policy{Namespace: "shop", Name: "p"}
			if c.change != nil {
				c.change(p)
			}
			var have *model.Binding
			if c.have != nil {
				have = model.NewBinding("shop", "cart-deployment")
				have.SetResourceVersion("7")
				c.have(have)
			}
			b, err := DesiredBinding(cart, "u", p, members, c.replicas, have)
			if err != nil {
				t.Fatal(err)
			}
			s := b.Spec
			suspended := s.Suspension != nil && ptr.Deref(s.Suspension.Dispatching, false)
			if got := fmt.Sprint(s.Clusters, s.Replicas, " ", s.ConflictResolution, " ", suspended, ptr.Deref(s.PreserveResourcesOnDeletion, false), s.RequiredBy); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if model.ClaimOf(b) != p.Key() || !slices.Contains(b.GetFinalizers(), model.FinalizerBinding) || model.TemplateOfBinding(b).Name != "cart" || s.Resource.UID != "u" {
				t.Errorf("%v, %v, %v", model.ClaimOf(b), b.GetFinalizers(), s.Resource)
			}
			if (have != nil) != (b.GetResourceVersion() == "7") {
				t.Errorf("resourceVersion %q", b.GetResourceVersion())
			}
		})
	}
}

package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestDecide(t *testing.T) {
	selecting := func(name, apiVersion string) *policy.Policy {
		return &policy.Policy{Namespace: "shop", Name: name, Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: "Deployment"}},
		}}
	}
	p, q := selecting("p", "apps/v1"), selecting("q", "apps/v1")
	aborted := selecting("p", "apps/v1")
	aborted.Aborted = true
	paused, leaving, refused, suspended := selecting("p", "apps/v1"), selecting("p", "apps/v1"), selecting("p", "apps/v1"), selecting("p", "apps/v1")
	paused.Paused, leaving.Paused, leaving.Deleted = true, true, true
	refused.Spec.Failover = &policyv1alpha1.FailoverBehavior{}
	suspended.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
	bound := func(claim *policy.Policy, changes ...func(*model.Binding)) *model.Binding {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
		if claim != nil {
			model.Claim(b, claim.Key())
		}
		for _, change := range changes {
			change(b)
		}
		return b
	}
	deleting := func(b *model.Binding) { b.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time}) }
	required := func(b *model.Binding) { b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "pay"}} }
	beta := func(b *model.Binding) { b.Spec.Resource.APIVersion = "apps/v1beta1" }
	for name, c := range map[string]struct {
		gone     bool
		policies []*policy.Policy
		binding  *model.Binding
		action   passage.Action
		policy   *policy.Policy
	}{
		"gone, and never bound":                    {true, nil, nil, model.ActionNone, nil},
		"gone":                                     {true, nil, bound(p), model.ActionDelete, nil},
		"gone, and its binding is being deleted":   {true, nil, bound(p, deleting), model.ActionNone, nil},
		"gone, and its policy is paused":           {true, []*policy.Policy{paused}, bound(p), model.ActionKeep, nil},
		"gone, and its policy is refused":          {true, []*policy.Policy{refused}, bound(p), model.ActionKeep, nil},
		"gone, and its paused policy goes too":     {true, []*policy.Policy{leaving}, bound(p), model.ActionDelete, nil},
		"gone, and another policy is paused":       {true, []*policy.Policy{paused}, bound(q), model.ActionDelete, nil},
		"gone, and its policy is suspended":        {true, []*policy.Policy{suspended}, bound(p), model.ActionDelete, nil},
		"gone, and its policy is aborted":          {true, []*policy.Policy{aborted}, bound(p), model.ActionRestore, nil},
		"selected":                                 {false, []*policy.Policy{p}, nil, model.ActionApply, p},
		"not selected":                             {false, nil, nil, model.ActionNone, nil},
		"claimed, and stays so":                    {false, []*policy.Policy{p, q}, bound(q), model.ActionApply, q},
		"its policy is gone":                       {false, nil, bound(p), model.ActionOrphan, nil},
		"its policy is gone, another one selects":  {false, []*policy.Policy{q}, bound(p), model.ActionApply, q},
		"its policy is aborted":                    {false, []*policy.Policy{aborted}, bound(p), model.ActionRestore, nil},
		"its policy is aborted, another selects":   {false, []*policy.Policy{aborted, q}, bound(p), model.ActionRestore, nil},
		"aborted, and its binding is deleted":      {false, []*policy.Policy{aborted}, bound(p, deleting), model.ActionNone, nil},
		"an aborted policy takes nothing":          {false, []*policy.Policy{aborted}, nil, model.ActionNone, nil},
		"its binding is being deleted":             {false, []*policy.Policy{p}, bound(p, deleting), model.ActionWait, p},
		"required, and not selected":               {false, nil, bound(nil, required), model.ActionKeep, nil},
		"required, and selected":                   {false, []*policy.Policy{p}, bound(nil, required), model.ActionApply, p},
		"neither claimed nor required":             {false, nil, bound(nil), model.ActionNone, nil},
		"taken in another version":                 {false, []*policy.Policy{selecting("b", "apps/v1beta1"), p}, bound(selecting("b", ""), beta), model.ActionNone, nil},
		"no longer selected in the other version":  {false, []*policy.Policy{p}, bound(selecting("b", ""), beta), model.ActionApply, p},
		"bound in another version, never selected": {false, nil, bound(p, beta), model.ActionNone, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(Observed{
				Template: model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"},
				Exists:   !c.gone, Policies: c.policies, Binding: c.binding,
			})
			if d.Action != c.action || d.Policy != c.policy {
				t.Errorf("got %s (%s) by %v", d.Action, d.Reason, d.Policy)
			}
			if d.Action != model.ActionNone && d.Reason.Message == "" {
				t.Errorf("%s has no reason", d.Action)
			}
		})
	}
}

// What a policy says when a template goes counts, although the binding was made before; and nobody can resume a policy that is gone.
func TestObjectsOfADeletedTemplateStay(t *testing.T) {
	p := func(change func(*policy.Policy)) []*policy.Policy {
		one := &policy.Policy{Namespace: "shop", Name: "p"}
		change(one)
		return []*policy.Policy{one}
	}
	for name, c := range map[string]struct {
		policies []*policy.Policy
		held     bool
		want     bool
	}{
		"by a policy that is resumed":                   {p(func(*policy.Policy) {}), true, false},
		"by a policy that keeps them since":             {p(func(p *policy.Policy) { p.Spec.PreserveResourcesOnDeletion = ptr.To(true) }), true, true},
		"by a policy that went while it was paused":     {nil, true, true},
		"by a policy that is going while it was paused": {p(func(p *policy.Policy) { p.Deleted = true }), true, true},
		"by a policy that went":                         {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
			model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
			if c.held {
				b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
			}
			o := Observed{Template: model.TemplateOfBinding(b), Binding: b, Policies: c.policies}
			d := Decide(o)
			if d.Action != model.ActionDelete || d.Preserve != c.want {
				t.Errorf("got %s, and objects stay: %t", d.Action, d.Preserve)
			}
			if DependsOnNamespace(o, d) != c.want {
				t.Errorf("depends on the namespace: %t", !c.want)
			}
			o.NamespaceDeleted = true
			if d, told := Decide(o), len(c.policies) > 0 && !c.policies[0].Deleted; d.Preserve != (c.want && told) {
				t.Errorf("in a namespace that is being deleted, objects stay: %t", d.Preserve)
			}
		})
	}
}

// In a namespace that is being deleted, policies go before or after templates, and no template is released for that.
func TestDecideInADeletedNamespace(t *testing.T) {
	selecting := func(namespace, name string) *policy.Policy {
		return &policy.Policy{Namespace: namespace, Name: name, Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
		}}
	}
	p, ofCluster, aborted, deleted := selecting("shop", "p"), selecting("", "all"), selecting("shop", "p"), selecting("shop", "p")
	aborted.Aborted, deleted.Deleted = true, true
	for name, c := range map[string]struct {
		policies []*policy.Policy
		binding  bool
		deleting bool
		depends  bool
		action   passage.Action
	}{
		"its policy is there":                     {[]*policy.Policy{p}, true, false, false, model.ActionDelete},
		"its policy is gone":                      {nil, true, false, true, model.ActionDelete},
		"its policy is being deleted":             {[]*policy.Policy{deleted}, true, false, true, model.ActionDelete},
		"its policy is gone, another one selects": {[]*policy.Policy{ofCluster}, true, false, true, model.ActionDelete},
		"its policy is aborted":                   {[]*policy.Policy{aborted}, true, false, false, model.ActionRestore},
		"its binding is being deleted":            {[]*policy.Policy{p}, true, true, false, model.ActionNone},
		"its binding is gone":                     {[]*policy.Policy{p}, false, false, false, model.ActionNone},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Template: model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}, Exists: true, Policies: c.policies}
			if c.binding {
				o.Binding = model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
				o.Binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
				model.Claim(o.Binding, p.Key())
				if c.deleting {
					o.Binding.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
				}
			}
			if got := DependsOnNamespace(o, Decide(o)); got != c.depends {
				t.Errorf("depends on the namespace: %t", got)
			}
			o.NamespaceDeleted = true
			if d := Decide(o); d.Action != c.action {
				t.Errorf("got %s (%s)", d.Action, d.Reason)
			}
		})
	}
}

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
		"not protected from deletion": {func(p *policy.Policy) {
			p.Spec.DeletionProtection = policyv1alpha1.DeletionProtectionDisabled
		}, -1, nil, "[{east 0} {west 0}] 0 Abort false false []"},
		"in one cluster": {func(p *policy.Policy) {
			p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}
		}, -1, nil, "[{west 0}] 0 Abort false false []"},
		"divided": {func(p *policy.Policy) {
			p.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaScheduling{ReplicaSchedulingType: policyv1alpha1.ReplicasDivided}
		}, 3, nil, "[{east 2} {west 1}] 3 Abort false false []"},
		"divided by room": {func(p *policy.Policy) {
			p.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaScheduling{
				ReplicaSchedulingType: policyv1alpha1.ReplicasDivided, WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.WeightByAvailableReplicas},
			}
		}, 3, nil, "[] 3 Abort false false []"},
		"required by another, and now taken": {nil, -1, func(b *model.Binding) {
			b.Spec.RequiredBy, b.Spec.PreserveResourcesOnDeletion = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "pay"}}, ptr.To(true)
		}, "[{east 0} {west 0}] 0 Abort false false [{shop pay []}]"},
		"refused, and new": {func(p *policy.Policy) { p.Spec.Failover = &policyv1alpha1.FailoverBehavior{} }, -1, nil, "[] 0 Abort true false []"},
		"refused after it was placed": {func(p *policy.Policy) {
			p.Spec.Failover, p.Spec.PreserveResourcesOnDeletion = &policyv1alpha1.FailoverBehavior{}, ptr.To(true)
			p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
		}, 7, func(b *model.Binding) {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "north", Replicas: 1}, {Name: "west", Replicas: 2}}
			b.Spec.Replicas, b.Spec.ConflictResolution = 3, policyv1alpha1.ConflictOverwrite
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart", UID: "u"}
			model.AddFinalizer(b.Object, model.FinalizerBinding)
		}, "[{west 2}] 3 Overwrite true true []"},
		"refused, and no longer preserved": {func(p *policy.Policy) { p.Spec.Failover = &policyv1alpha1.FailoverBehavior{} }, -1, func(b *model.Binding) {
			b.Spec.PreserveResourcesOnDeletion = ptr.To(true)
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart", UID: "u"}
			model.AddFinalizer(b.Object, model.FinalizerBinding)
		}, "[] 0 Abort true true []"},
		"no longer refused": {nil, -1, func(b *model.Binding) {
			model.SetUnsupportedFields(b, []string{"spec.failover"})
			b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
		}, "[{east 0} {west 0}] 0 Abort false false []"},
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
				have = model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
				have.SetResourceVersion("7")
				c.have(have)
			}
			b, err := DesiredBinding(cart, "u", p, members, Content{Replicas: c.replicas}, have)
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
			if s.DeletionProtection != p.Spec.DeletionProtection {
				t.Errorf("deletionProtection %q, and the policy says %q", s.DeletionProtection, p.Spec.DeletionProtection)
			}
			if !slices.Equal(model.UnsupportedFieldsOf(b), p.UnsupportedFields()) {
				t.Errorf("unsupported fields %v", model.UnsupportedFieldsOf(b))
			}
			if (have != nil) != (b.GetResourceVersion() == "7") {
				t.Errorf("resourceVersion %q", b.GetResourceVersion())
			}
		})
	}
}

// A dependency that no policy takes is taken over only if all that require it are, whatever it was before.
func TestWithDependents(t *testing.T) {
	suspended := &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
	deployment := func(name string, resolution policyv1alpha1.ConflictResolution) *model.Binding {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: name})
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

// targets are clusters, separated by spaces.
func targets(names string) []workv1alpha2.TargetCluster {
	var all []workv1alpha2.TargetCluster
	for name := range strings.FieldsSeq(names) {
		all = append(all, workv1alpha2.TargetCluster{Name: name})
	}
	return all
}

// Where a dependency goes no longer, an abort restores its original.
func TestWithoutDependent(t *testing.T) {
	pay := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "pay"})
	cart := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart"})
	cart.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	find := func(key types.NamespacedName) *model.Binding {
		return map[string]*model.Binding{"cart": cart}[key.Name]
	}
	for name, c := range map[string]struct {
		requiredBy map[string]string
		claimed    string
		taken      bool
		restored   string
	}{
		"the last that required it":                      {map[string]string{"pay": "west"}, "", false, "west"},
		"one of two, in the same cluster":                {map[string]string{"cart": "west", "pay": "west"}, "", true, ""},
		"one of two, in two clusters more":               {map[string]string{"cart": "west", "pay": "north east west"}, "", true, "east,north"},
		"the last, and a policy takes it":                {map[string]string{"pay": "west"}, "west", true, ""},
		"the last, and a policy takes it, but elsewhere": {map[string]string{"pay": "west"}, "east", true, "west"},
		"required by others, never by this":              {map[string]string{"cart": "west"}, "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dependency := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "settings"})
			// As it was while pay required it.
			dependency.Spec.ConflictResolution, dependency.Spec.Suspension = policyv1alpha1.ConflictAbort, &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
			for r, clusters := range c.requiredBy {
				dependency.Spec.RequiredBy = append(dependency.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: r, Clusters: targets(clusters)})
			}
			if c.claimed != "" {
				model.Claim(dependency, model.PolicyKey{Namespace: "shop", Name: "p"})
				dependency.Spec.Clusters = targets(c.claimed)
			}
			got := WithoutDependent(dependency, find, pay, true)
			if model.IsTaken(got) != c.taken || model.IsRequiredBy(got, map[string]bool{"shop/pay": true}) || len(dependency.Spec.RequiredBy) != len(c.requiredBy) {
				t.Errorf("required by %v, before by %v", got.Spec.RequiredBy, dependency.Spec.RequiredBy)
			}
			if restored := got.GetAnnotations()[model.AnnotationRestoreClusters]; restored != c.restored {
				t.Errorf("restored in %s", restored)
			}
			if kept := WithoutDependent(dependency, find, pay, false); kept.GetAnnotations()[model.AnnotationRestoreClusters] != "" {
				t.Errorf("no abort, and restored in %v", kept.GetAnnotations())
			}
			if inherits := c.requiredBy["cart"] != ""; (got.Spec.Suspension == nil) != inherits || (got.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite) != inherits {
				t.Errorf("suspended %v, %s", got.Spec.Suspension, got.Spec.ConflictResolution)
			}
		})
	}
}

// A cluster that a dependency goes to again is not one to restore in any longer, whoever takes the dependency there.
func TestRestoredNoLonger(t *testing.T) {
	template := model.Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	restored := NewDependency(template, "u")
	model.RestoreIn(restored, targets("east west")...)
	by := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "by"})
	by.Spec.Clusters = targets("west")
	claimed, err := DesiredBinding(template, "u", &policy.Policy{Namespace: "shop", Name: "p"}, []policy.Member{{Name: "west"}}, Content{Replicas: -1}, restored)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*model.Binding{"required": WithDependents(restored, nil, by), "claimed": claimed} {
		if !model.IsRestoredIn(b, "east") || model.IsRestoredIn(b, "west") || model.IsRestoredIn(b, "") {
			t.Errorf("%s: %v", name, b.GetAnnotations())
		}
	}
}

// The client decodes the answer of the API server into the binding that it has sent, and all workers read the policy at the same time.
func TestDesiredBindingSharesNothingWithItsPolicy(t *testing.T) {
	p := &policy.Policy{Namespace: "shop", Name: "p", Spec: policyv1alpha1.PropagationSpec{
		PreserveResourcesOnDeletion: ptr.To(true),
		Suspension:                  &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"west"}}},
		Placement: policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}},
		}},
	}}
	before := p.Spec.DeepCopy()
	b, err := DesiredBinding(model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}, "u", p, nil, Content{Replicas: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Spec.Placement.ClusterAffinity.LabelSelector.MatchLabels["tier"] = "decoded"
	b.Spec.Suspension.DispatchingOnClusters.ClusterNames[0] = "decoded"
	*b.Spec.PreserveResourcesOnDeletion = false
	if diff := cmp.Diff(before, &p.Spec); diff != "" {
		t.Errorf("the policy changes with its binding: %s", diff)
	}
}

// A policy that is refused changes deletionProtection of its bindings only so that more stays in clusters.
func TestDeletionProtectionOfRefusedBinding(t *testing.T) {
	const enabled, disabled = policyv1alpha1.DeletionProtectionEnabled, policyv1alpha1.DeletionProtectionDisabled
	for _, c := range []struct {
		have, asked, want policyv1alpha1.DeletionProtection
	}{
		{"", "", ""}, {"", disabled, ""}, {enabled, disabled, enabled}, {disabled, "", ""}, {disabled, enabled, enabled}, {disabled, disabled, disabled},
	} {
		p := &policy.Policy{Namespace: "shop", Name: "p"}
		p.Spec.Failover, p.Spec.DeletionProtection = &policyv1alpha1.FailoverBehavior{}, c.asked
		have := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "data-persistentvolumeclaim"})
		have.Spec.DeletionProtection = c.have
		claim := model.Template{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}
		b, err := DesiredBinding(claim, "u", p, nil, Content{Replicas: -1}, have)
		if err != nil || b.Spec.DeletionProtection != c.want {
			t.Errorf("from %q, asked for %q: %q, %v", c.have, c.asked, b.Spec.DeletionProtection, err)
		}
	}
}

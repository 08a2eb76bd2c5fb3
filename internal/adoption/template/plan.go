package template

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// Decision is what becomes of the binding of a template.
type Decision struct {
	Action passage.Action
	Reason passage.Reason
	// Preserve holds when the objects of a binding that is deleted stay in clusters, whatever the binding says.
	Preserve bool
	// Policy is the one that takes the template, nil if none does.
	Policy *policy.Policy
}

// Decide which policy takes a template, and what becomes of its binding.
func Decide(o Observed) Decision {
	have := o.Binding
	deleting := have != nil && have.GetDeletionTimestamp() != nil
	claim := model.ClaimOf(have)
	switch {
	case !o.Exists && (have == nil || deleting):
		return Decision{Action: model.ActionNone}
	case !o.Exists:
		return decideDeleted(o)
	case IsTakenInOtherVersion(o):
		return Decision{Action: model.ActionNone, Reason: passage.Because("OtherVersion", "a policy takes the template as %s", have.Spec.Resource.APIVersion)}
	case have != nil && !deleting && isAborted(o.Policies, claim):
		// Another policy may take the template when its originals are restored.
		return Decision{Action: model.ActionRestore, Reason: passage.Because(model.ReasonAborted, "policy %s is aborted", claim)}
	case o.NamespaceDeleted && (have == nil || deleting):
		return Decision{Action: model.ActionNone}
	case o.NamespaceDeleted:
		// The template goes too, even if its policy goes before.
		return Decision{Action: model.ActionDelete, Reason: passage.Because("NamespaceDeleted", "namespace %s is being deleted", o.Template.Namespace)}
	}
	switch chosen := policy.Select(o.Template, o.Policies, claim); {
	case chosen != nil && deleting:
		return Decision{Action: model.ActionWait, Reason: passage.Because(model.ReasonBeingDeleted, "%s is being deleted, and is created again when it is gone", have), Policy: chosen}
	case chosen != nil:
		return Decision{Action: model.ActionApply, Reason: passage.Because("Selected", "policy %s takes the template", chosen.Key()), Policy: chosen}
	case have == nil || deleting:
		return Decision{Action: model.ActionNone}
	case claim != (model.PolicyKey{}):
		return Decision{Action: model.ActionOrphan, Reason: passage.Because("NotSelected", "policy %s no longer takes the template", claim)}
	case len(have.Spec.RequiredBy) > 0:
		return Decision{Action: model.ActionKeep, Reason: passage.Because("Required", "other templates require the template")}
	}
	return Decision{Action: model.ActionNone}
}

// decideDeleted decides what becomes of the binding of a template that is gone. It stays as long as its policy is paused, or has
// fields that are not supported: nothing is deleted in clusters meanwhile.
func decideDeleted(o Observed) Decision {
	claim := model.ClaimOf(o.Binding)
	if p := policyOf(o.Policies, claim); p != nil {
		hold := p.Unsupported()
		if p.Paused {
			hold = p.Hold()
		}
		switch {
		case p.Aborted:
			return Decision{Action: model.ActionRestore, Reason: passage.Because(model.ReasonAborted, "policy %s is aborted", claim)}
		case hold != nil:
			return Decision{Action: model.ActionKeep, Reason: passage.Because(hold.Code, "the template is deleted, and its objects stay in clusters: %s", hold.Message)}
		}
	}
	return Decision{Action: model.ActionDelete, Preserve: isPreserved(o), Reason: passage.Because("TemplateDeleted", "the template is deleted")}
}

// isPreserved tells whether objects stay in clusters although their template is deleted, for a reason that the binding may not
// record: preserveResourcesOnDeletion of the policy was set after the binding was written, or the policy was deleted while it was
// paused, and can no longer be resumed. The latter does not count in a namespace that is being deleted, whose objects are deleted in any
// order.
func isPreserved(o Observed) bool {
	if p := policyOf(o.Policies, model.ClaimOf(o.Binding)); p != nil {
		return ptr.Deref(p.Spec.PreserveResourcesOnDeletion, false)
	}
	suspension := o.Binding.Spec.Suspension
	return !o.NamespaceDeleted && suspension != nil && ptr.Deref(suspension.Dispatching, false)
}

// policyOf a claim, nil if it is gone or goes.
func policyOf(policies []*policy.Policy, claim model.PolicyKey) *policy.Policy {
	if at := slices.IndexFunc(policies, func(p *policy.Policy) bool { return p.Key() == claim && !p.Deleted }); at >= 0 {
		return policies[at]
	}
	return nil
}

// DependsOnNamespace tells whether a decision releases a template from its policy, or keeps objects because the policy is gone. It
// must not if the policy goes only because the namespace is being deleted: what becomes of the objects would depend on whether the
// policy or the template goes first.
func DependsOnNamespace(o Observed, d Decision) bool {
	if o.Template.Namespace == "" || o.Binding == nil {
		return false
	}
	return d.Action == model.ActionOrphan || d.Preserve || d.Action == model.ActionApply && d.Policy.Key() != model.ClaimOf(o.Binding)
}

// IsTakenInOtherVersion tells whether the binding of a template is for another version of its kind, and stays so.
func IsTakenInOtherVersion(o Observed) bool {
	if o.Binding == nil || o.Binding.Spec.Resource.APIVersion == o.Template.APIVersion {
		return false
	}
	bound := o.Template
	bound.APIVersion = o.Binding.Spec.Resource.APIVersion
	return policy.Select(bound, o.Policies, model.ClaimOf(o.Binding)) != nil || policy.Select(o.Template, o.Policies, model.PolicyKey{}) == nil
}

// isAborted tells whether the policy of a claim is aborted.
func isAborted(policies []*policy.Policy, claim model.PolicyKey) bool {
	return slices.ContainsFunc(policies, func(p *policy.Policy) bool { return p.Key() == claim && p.Aborted })
}

// Content is the part of a template that its binding depends on, besides what policies select by.
type Content struct {
	// Replicas are negative for a resource without any.
	Replicas int32
	// Requests are the resources that one replica requests. They are needed for a policy that divides replicas by room.
	Requests corev1.ResourceList
	// Version and Created are needed for a policy that is Lazy. Created is zero for a template that does not exist yet.
	Version string
	Created time.Time
}

// NeedsContent tells whether a policy cannot be carried out without the content of a template.
func NeedsContent(p *policy.Policy) bool {
	return len(p.UnsupportedFields()) == 0 && (p.Spec.Placement.Divides() || p.Spec.PropagateDeps || p.IsLazy())
}

// ContentOf is the content of a template that a policy needs; without a template, none.
func ContentOf(template *unstructured.Unstructured, p *policy.Policy) (Content, error) {
	c := Content{Replicas: -1}
	if template == nil || !NeedsContent(p) {
		return c, nil
	}
	c.Replicas, c.Created = manifest.Replicas(template), template.GetCreationTimestamp().Time
	if p.Spec.Placement.DividesByRoom() || p.IsLazy() {
		c.Requests = manifest.PodRequests(template)
	}
	if !p.IsLazy() {
		return c, nil
	}
	var err error
	c.Version, err = manifest.ActivationVersion(template)
	return c, err
}

// DesiredBinding is the binding of a resource as its policy asks for, made from the existing binding.
func DesiredBinding(t model.Template, uid types.UID, p *policy.Policy, members []policy.Member, content Content, have *model.Binding) (*model.Binding, error) {
	if fields := p.UnsupportedFields(); len(fields) > 0 {
		return refusedBinding(t, uid, p, fields, members, have), nil
	}
	active := p.Activate(have, content.Version, content.Created)
	p = active.Policy
	demand := policy.Demand{Replicas: -1}
	if p.Spec.Placement.Divides() {
		demand.Replicas = content.Replicas
	}
	var requirements *workv1alpha2.ReplicaRequirements
	if p.Spec.Placement.DividesByRoom() && demand.Replicas >= 0 {
		demand.Requests = content.Requests
		requirements = &workv1alpha2.ReplicaRequirements{Namespace: t.Namespace}
		requirements.ResourceRequest = content.Requests
	}
	var placed policy.Placed
	if !active.Unplaced {
		var err error
		if placed, err = policy.Place(p.Spec.Placement, members, demand, policy.PlacedBy(have)); err != nil {
			return nil, err
		}
	}
	// The policy is shared with a cache, and a client decodes answers into the object that it has sent.
	spec := p.Spec.DeepCopy()
	want := model.NewBinding(t.Key().Binding())
	if have != nil {
		want = have.Copy()
	}
	model.AddFinalizer(want.Object, model.FinalizerBinding)
	model.Claim(want, p.Key())
	model.SetUnsupportedFields(want, nil)
	model.SetPlaced(want, placed.Placing)
	model.SetActivation(want, content.Version, active.Deferred)
	*want.Spec = workv1alpha2.ResourceBindingSpec{
		Resource:           workv1alpha2.ObjectReference{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, UID: uid},
		Clusters:           placed.Clusters,
		Replicas:           max(0, demand.Replicas),
		ConflictResolution: p.Spec.ConflictResolution,
		Placement:          &spec.Placement,
		Suspension:         policy.SuspensionOf(p), PreserveResourcesOnDeletion: spec.PreserveResourcesOnDeletion,
		DeletionProtection: p.Spec.DeletionProtection,
		PropagateDeps:      p.Spec.PropagateDeps, SchedulerName: p.Spec.SchedulerName,
		RequiredBy: want.Spec.RequiredBy, ReplicaRequirements: requirements,
	}
	if active.Unplaced {
		want.Spec.Placement = nil
	}
	if want.Spec.ConflictResolution == "" {
		want.Spec.ConflictResolution = policyv1alpha1.ConflictAbort
	}
	model.RestoreIn(want)
	return want, nil
}

// FormerBinding is the binding that the Works of a template are from, as far as they tell where it went, nil if there are none. A new
// binding is made from it, so that nothing moves when somebody has deleted the binding.
func FormerBinding(t model.Template, uid types.UID, works map[string]*workv1alpha1.Work) *model.Binding {
	former := newBinding(t, uid)
	for _, cluster := range slices.Sorted(maps.Keys(works)) {
		work := works[cluster]
		if work.DeletionTimestamp.IsZero() && work.Annotations[model.AnnotationClaim] != (model.PolicyKey{}).String() {
			former.Spec.Clusters = append(former.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster, Replicas: replicasOf(work)})
			if ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
				former.Spec.PreserveResourcesOnDeletion = ptr.To(true)
			}
		}
	}
	if len(former.Spec.Clusters) == 0 {
		return nil
	}
	return former
}

// replicasOf are the replicas that a Work gives its cluster, 0 if it has none.
func replicasOf(work *workv1alpha1.Work) int32 {
	for _, m := range work.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(m.Raw) == nil {
			return max(0, manifest.Replicas(object))
		}
	}
	return 0
}

// refusedBinding is the binding of a resource whose policy has fields that are not supported. It stays as it is, and nothing is
// written to its clusters: a new one has none.
func refusedBinding(t model.Template, uid types.UID, p *policy.Policy, fields []string, members []policy.Member, have *model.Binding) *model.Binding {
	want := newBinding(t, uid)
	if have != nil {
		want = have.Copy()
	}
	model.Claim(want, p.Key())
	model.SetUnsupportedFields(want, fields)
	want.Spec.Clusters = slices.DeleteFunc(want.Spec.Clusters, func(c workv1alpha2.TargetCluster) bool {
		return !slices.ContainsFunc(members, func(m policy.Member) bool { return m.Name == c.Name })
	})
	want.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
	// What has to stay in clusters is also kept if the binding is deleted meanwhile.
	if ptr.Deref(p.Spec.PreserveResourcesOnDeletion, false) {
		want.Spec.PreserveResourcesOnDeletion = ptr.To(true)
	}
	if p.Spec.DeletionProtection != policyv1alpha1.DeletionProtectionDisabled {
		want.Spec.DeletionProtection = p.Spec.DeletionProtection
	}
	if want.Spec.ConflictResolution == "" {
		want.Spec.ConflictResolution = policyv1alpha1.ConflictAbort
	}
	return want
}

// newBinding is a binding that goes nowhere.
func newBinding(t model.Template, uid types.UID) *model.Binding {
	b := model.NewBinding(t.Key().Binding())
	model.AddFinalizer(b.Object, model.FinalizerBinding)
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, UID: uid}
	return b
}

// NewDependency is the binding of a template that no policy takes, before anything requires it.
func NewDependency(t model.Template, uid types.UID) *model.Binding {
	b := newBinding(t, uid)
	// Other objects in the cluster may depend on the object too.
	b.Spec.PreserveResourcesOnDeletion = ptr.To(true)
	return b
}

// WithDependents is the binding of a dependency that goes where other templates go, too. If no policy takes the dependency, it is
// taken over only if all that require it are, and nothing is written as long as one of those is suspended. Find returns the
// bindings of templates that required it before, nil for one that is gone.
func WithDependents(dependency *model.Binding, find func(types.NamespacedName) *model.Binding, by ...*model.Binding) *model.Binding {
	want := dependency.Copy()
	removeDependents(want, by...)
	for _, b := range by {
		snapshot := workv1alpha2.BindingSnapshot{Namespace: b.GetNamespace(), Name: b.GetName()}
		for _, c := range b.Spec.Clusters {
			snapshot.Clusters = append(snapshot.Clusters, workv1alpha2.TargetCluster{Name: c.Name})
		}
		want.Spec.RequiredBy = append(want.Spec.RequiredBy, snapshot)
	}
	slices.SortFunc(want.Spec.RequiredBy, func(a, b workv1alpha2.BindingSnapshot) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	model.RestoreIn(want)
	inheritPolicies(want, func(key types.NamespacedName) *model.Binding {
		for _, b := range by {
			if b.GetNamespace() == key.Namespace && b.GetName() == key.Name {
				return b
			}
		}
		return find(key)
	})
	return want
}

// WithoutDependent is the binding of a dependency that a template no longer requires. With restore, its originals are restored in
// the clusters that it goes to no longer.
func WithoutDependent(dependency *model.Binding, find func(types.NamespacedName) *model.Binding, by *model.Binding, restore bool) *model.Binding {
	want := dependency.Copy()
	removeDependents(want, by)
	if restore {
		model.RestoreIn(want, model.Targets(dependency)...)
	}
	inheritPolicies(want, find)
	return want
}

// IsKept tells whether the binding of a template that nothing requires any more stays: a policy takes the template, or has placed it
// before it was deleted. Then the template is not released before it is deleted itself.
func IsKept(dependency *model.Binding) bool {
	return model.IsTaken(dependency) || dependency.Spec.Placement != nil
}

func removeDependents(dependency *model.Binding, by ...*model.Binding) {
	dependency.Spec.RequiredBy = slices.DeleteFunc(dependency.Spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool {
		return slices.ContainsFunc(by, func(b *model.Binding) bool { return b.GetNamespace() == s.Namespace && b.GetName() == s.Name })
	})
}

// inheritPolicies gives a dependency that no policy takes the conflict resolution and the suspensions of those that require it.
func inheritPolicies(dependency *model.Binding, find func(types.NamespacedName) *model.Binding) {
	if model.ClaimOf(dependency) != (model.PolicyKey{}) || len(dependency.Spec.RequiredBy) == 0 {
		return
	}
	dependency.Spec.ConflictResolution, dependency.Spec.Suspension = policyv1alpha1.ConflictOverwrite, nil
	var suspendedOn []string
	for _, r := range dependency.Spec.RequiredBy {
		b := find(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
		if b == nil {
			continue
		}
		if b.Spec.ConflictResolution != policyv1alpha1.ConflictOverwrite {
			dependency.Spec.ConflictResolution = policyv1alpha1.ConflictAbort
		}
		if s := b.Spec.Suspension; s != nil && ptr.Deref(s.Dispatching, false) {
			dependency.Spec.Suspension = s
		} else if s != nil && s.DispatchingOnClusters != nil {
			suspendedOn = append(suspendedOn, s.DispatchingOnClusters.ClusterNames...)
		}
	}
	if dependency.Spec.Suspension == nil && len(suspendedOn) > 0 {
		slices.Sort(suspendedOn)
		dependency.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{
			DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: slices.Compact(suspendedOn)},
		}}
	}
}

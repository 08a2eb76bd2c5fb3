package binding

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// Why a binding has a Work in a cluster, or no longer.
const (
	ReasonPlaced    passage.Code = "Placed"
	ReasonRequired  passage.Code = "Required"
	ReasonChanged   passage.Code = "Changed"
	ReasonNotPlaced passage.Code = "NotPlaced"
	ReasonReleased  passage.Code = "Released"
	ReasonRestored  passage.Code = "Undone"
	ReasonRecreated passage.Code = "Recreated"
	ReasonProtected passage.Code = "DeletionProtected"
)

// Step is what becomes of the Work of a binding in one cluster.
type Step struct {
	passage.Step
	// Work is the desired one. That of a step that deletes has the annotation, and preserveResourcesOnDeletion, by which the Work
	// controller decides what becomes of the object.
	Work *workv1alpha1.Work
	// Content has the values of the template that the manifest of a Work that stays leaves out, nil if there are none. The Work
	// controller reads them from the template.
	Content map[string]any
	// Deletion is set for a Work that stays for now in a cluster that the template no longer goes to.
	Deletion *Deletion
}

// Deletion is the step that deletes a Work later: when the template is applied in the awaited clusters, or when the policy no longer
// suspends dispatching.
type Deletion struct {
	Step
	Awaited []string
}

// Manifest is that of the Work, with the values that it leaves out.
func (s Step) Manifest() (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(s.Work.Spec.Workload.Manifests[0].Raw); err != nil {
		return nil, err
	}
	if whole := manifest.WithContent(object, s.Content); whole != nil {
		return whole, nil
	}
	return object, nil
}

// Source is the template that Works are made from.
type Source struct {
	// Version of the template, as manifest.Version has it; empty if it was never read.
	Version string
	// AnnotationErr is set if the conflict resolution annotation of the template is invalid; the one of the policy applies.
	AnnotationErr error
	// Refused is why no Works are made of the template, nil if they are.
	Refused *passage.Reason
	// Kept is why objects stay in clusters that the template no longer goes to, nil if none does.
	Kept *passage.Reason
}

// sourceOf is what the Works of a binding were made from last.
func sourceOf(b *model.Binding) Source { return Source{Version: b.Status.TemplateVersion} }

// Decision is the plan of a binding.
type Decision struct {
	Steps []Step
	Source
	// Err is why nothing can be decided.
	Err error
}

// Decide plans a step for each Work that a binding has, or should have, in the order of their clusters.
func Decide(o Observed) Decision {
	d := Decision{Source: sourceOf(o.Binding)}
	d.Refused = refusal(o)
	switch {
	case o.Binding.GetDeletionTimestamp() != nil:
		d.addDeletions(o)
	case d.Refused != nil:
		// Works that there are stay as they are until the binding is deleted.
	case model.ClaimOf(o.Binding) == (model.PolicyKey{}) && policy.UnsupportedInBinding(o.Binding) != nil:
		// No policy has written the fields, and no policy can remove them.
	case o.Template != nil && model.IsTaken(o.Binding):
		d.addTargets(o)
	case o.Template != nil:
		d.addReleased(o)
	}
	return d
}

func sortedWorks(works map[string]*workv1alpha1.Work) []*workv1alpha1.Work {
	return slices.SortedFunc(maps.Values(works), func(a, b *workv1alpha1.Work) int { return cmp.Compare(a.Namespace, b.Namespace) })
}

func (d *Decision) add(action passage.Action, why passage.Reason, work *workv1alpha1.Work) {
	object := passage.Object{APIVersion: workv1alpha1.GroupVersion.String(), Kind: "Work", Namespace: work.Namespace, Name: work.Name}
	object.Cluster, _ = model.ClusterOf(work.Namespace)
	d.Steps = append(d.Steps, Step{Step: passage.Step{Object: object, Action: action, Reason: why}, Work: work})
}

// addTargets plans the Works of the clusters that the template goes to, and the deletion of all others.
func (d *Decision) addTargets(o Observed) {
	annotation := o.Template.GetAnnotations()[policy.AnnotationConflictResolution]
	resolution, annotationErr := policy.ResolveConflict(o.Binding.Spec.ConflictResolution, annotation)
	// The manifest carries the resolution to the Work controller, as an annotation.
	common, version, err := manifest.FromTemplate(o.Template, resolution)
	d.Version, d.AnnotationErr, d.Err = version, annotationErr, err
	if err != nil {
		return
	}
	divided := o.Binding.Spec.Placement != nil && o.Binding.Spec.Placement.Divides() && manifest.Replicas(common) >= 0
	for _, target := range model.Targets(o.Binding) {
		one := common
		if divided {
			one = common.DeepCopy()
			// Replicas has found the field.
			_ = unstructured.SetNestedField(one.Object, int64(target.Replicas), "spec", "replicas")
		}
		if have := o.Works[target.Name]; have != nil && manifest.RunsOnce(common) {
			if one, err = withoutNewDefaults(one, have, o.Template); err != nil {
				d.Err = err
				return
			}
		}
		desired, err := desiredWork(o.Binding, target.Name, one, version, o.Works[target.Name])
		if err == nil && o.Works[target.Name] == nil {
			err = recordFinished(desired, o.Binding, version, target.Name, one)
		}
		if err != nil {
			d.Err = err
			return
		}
		d.addTarget(o, target.Name, desired)
		d.Steps[len(d.Steps)-1].Content = manifest.ContentOf(one)
	}
	d.addUnplaced(o, d.awaitedClusters(o, divided), func(work *workv1alpha1.Work) bool { return isPreserved(o.Binding, work) })
}

// withoutNewDefaults is the manifest of a Job or Pod, which does not run again because the API server of the hub has new defaults.
func withoutNewDefaults(common *unstructured.Unstructured, have *workv1alpha1.Work, template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before := &unstructured.Unstructured{}
	if len(have.Spec.Workload.Manifests) == 0 || before.UnmarshalJSON(have.Spec.Workload.Manifests[0].Raw) != nil {
		return common, nil
	}
	one := common.DeepCopy()
	return one, manifest.RemoveNewDefaults(one, before, template)
}

// addReleased plans the Works of a template that no policy takes any more. The objects stay managed where the last policy has placed
// them, and are orphaned elsewhere.
func (d *Decision) addReleased(o Observed) {
	unplaced := unplacedWorks(o)
	for _, work := range sortedWorks(o.Works) {
		if cluster, _ := model.ClusterOf(work.Namespace); unplaced[cluster] != nil {
			continue
		}
		if without := withoutContent(work); without != nil && work.DeletionTimestamp.IsZero() {
			d.add(model.ActionUpdate, passage.Because(ReasonChanged, "the Work has the values of a Secret"), without)
		} else {
			d.add(model.ActionNone, passage.Reason{}, work)
		}
	}
	d.addUnplaced(o, nil, func(*workv1alpha1.Work) bool { return true })
}

func (d *Decision) addTarget(o Observed, cluster string, desired *workv1alpha1.Work) {
	have := o.Works[cluster]
	switch {
	case have == nil:
		why := passage.Because(ReasonPlaced, "the placement selects cluster %s", cluster)
		if !model.HasCluster(o.Binding.Spec.Clusters, cluster) {
			why = passage.Because(ReasonRequired, "a resource that goes to cluster %s requires the template", cluster)
		}
		d.add(model.ActionCreate, why, desired)
		return
	case !have.DeletionTimestamp.IsZero():
		d.add(model.ActionWait, passage.Because(ReasonRecreated, "Work %s/%s is being deleted, and is created again when it is gone", have.Namespace, have.Name), have)
		return
	}
	if work := updatedWork(have, desired); work != nil {
		d.add(model.ActionUpdate, passage.Because(ReasonChanged, "the template or its policy has changed"), work)
		return
	}
	d.add(model.ActionNone, passage.Reason{}, have)
}

// desiredWork is the Work of a binding for a cluster, made from a version of the template.
func desiredWork(b *model.Binding, cluster string, object *unstructured.Unstructured, version string, have *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	text, err := json.Marshal(manifest.WithoutContent(object).Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", object.GetKind(), model.NameOf(object), err)
	}
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: model.ExecutionNamespace(cluster), Name: model.WorkName(model.TemplateOfBinding(b)), Finalizers: []string{model.FinalizerExecution},
			Labels: map[string]string{model.LabelBinding: string(b.GetUID()), model.LabelWork: model.ObjectID(object)},
			Annotations: map[string]string{
				model.AnnotationBinding: b.Path(), model.AnnotationClaim: claimOfWork(b, cluster, have).String(), model.AnnotationTemplateVersion: version,
			},
		},
		Spec: workv1alpha1.WorkSpec{
			Workload:                    workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: text}}}},
			PreserveResourcesOnDeletion: b.Spec.PreserveResourcesOnDeletion,
		},
	}
	if model.IsProtected(b) {
		work.Spec.PreserveResourcesOnDeletion = ptr.To(true)
	}
	work.Spec.SuspendDispatching = suspensionIn(b, cluster)
	return work, nil
}

// suspensionIn tells whether nothing is written to a cluster for now.
func suspensionIn(b *model.Binding, cluster string) *bool {
	s := b.Spec.Suspension
	switch {
	case s == nil:
		return nil
	case s.DispatchingOnClusters != nil && slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster):
		return ptr.To(true)
	}
	return s.Dispatching
}

// claimOfWork is the policy that places, or has placed, the object in a cluster: none if only other templates require it there.
func claimOfWork(b *model.Binding, cluster string, have *workv1alpha1.Work) model.PolicyKey {
	claim := model.ClaimOf(b)
	placed := model.HasCluster(b.Spec.Clusters, cluster)
	if placed || have != nil && have.Annotations[model.AnnotationClaim] == claim.String() {
		return claim
	}
	return model.PolicyKey{}
}

// updatedWork is an existing Work with the desired content, nil if it has that already.
func updatedWork(have, desired *workv1alpha1.Work) *workv1alpha1.Work {
	work := have.DeepCopy()
	work.Spec = desired.Spec
	var outdated []string
	if have.DeletionTimestamp.IsZero() {
		outdated = deletionAnnotations
		// `fairlead uninstall` has removed it, and Fairlead is installed again.
		model.AddFinalizer(work, model.FinalizerExecution)
	}
	work.Labels, work.Annotations = model.MergeKeys(have.Labels, nil, desired.Labels), model.MergeKeys(have.Annotations, outdated, desired.Annotations)
	compared := work.Annotations
	if have.Annotations[model.AnnotationTemplateVersion] == "" {
		// An earlier version of the operator has written the Work. It gets its version when it changes next.
		compared = model.MergeKeys(compared, []string{model.AnnotationTemplateVersion})
	}
	if equalSpecs(have.Spec, work.Spec) && maps.Equal(have.Labels, work.Labels) && maps.Equal(have.Annotations, compared) &&
		slices.Equal(have.Finalizers, work.Finalizers) {
		return nil
	}
	return work
}

// withoutContent is a Work of an earlier version, which has the values of a Secret, without them; nil if a Work has none.
func withoutContent(have *workv1alpha1.Work) *workv1alpha1.Work {
	work := have.DeepCopy()
	changed := false
	for i, m := range have.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(m.Raw) != nil || manifest.ContentOf(object) == nil {
			continue
		}
		if text, err := manifest.WithoutContent(object).MarshalJSON(); err == nil {
			work.Spec.Workload.Manifests[i].Raw, changed = text, true
		}
	}
	if !changed {
		return nil
	}
	return work
}

// haveContent tells whether Works of an earlier version have the values of a Secret.
func haveContent(o Observed) bool {
	if model.TemplateKeyOf(o.Binding).Kind.GroupKind().String() != "Secret" {
		return false
	}
	for _, work := range o.Works {
		if withoutContent(work) != nil {
			return true
		}
	}
	return false
}

// equalSpecs compares the content of manifests, because the API server encodes them in another order of fields.
func equalSpecs(a, b workv1alpha1.WorkSpec) bool {
	parsed := func(s workv1alpha1.WorkSpec) []any {
		var all []any
		for _, m := range s.Workload.Manifests {
			var object any
			_ = json.Unmarshal(m.Raw, &object)
			all = append(all, object)
		}
		return all
	}
	return equality.Semantic.DeepEqual(parsed(a), parsed(b)) && equality.Semantic.DeepEqual(a.SuspendDispatching, b.SuspendDispatching) &&
		equality.Semantic.DeepEqual(a.PreserveResourcesOnDeletion, b.PreserveResourcesOnDeletion)
}

// isPreserved tells whether an object stays in a cluster that its template no longer goes to: if the policy preserves resources
// now, even if it did not when the Work was written, or if the policy has not placed the object there: another one has, or another
// template required it, or an earlier binding had it there.
func isPreserved(b *model.Binding, work *workv1alpha1.Work) bool {
	return model.IsPreserved(b) || work.Annotations[model.AnnotationClaim] != model.ClaimOf(b).String() || work.Labels[model.LabelBinding] != string(b.GetUID())
}

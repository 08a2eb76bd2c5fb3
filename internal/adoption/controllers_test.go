package adoption

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/binding"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/template"
	"github.com/fairlead/fairlead/internal/adoption/work"
)

// reconcileTemplate does what the controller of templates does.
func (w *world) reconcileTemplate(key model.TemplateKey) {
	object := w.templates[key]
	have := w.bindings[client.ObjectKey{Namespace: key.Namespace, Name: model.BindingName(key.Kind, key.Name)}]
	o := template.Observed{Exists: object != nil, Policies: w.sortedPolicies(), Binding: have}
	if object != nil {
		o.Template = model.TemplateOf(object)
	}
	before := w.writes
	d := template.Decide(o)
	if template.DependsOnNamespace(o, d) {
		o.NamespaceDeleted = w.deletedNamespaces[key.Namespace]
		d = template.Decide(o)
	}
	switch d.Action {
	case model.ActionDelete:
		w.applyDependencies(have, nil, false)
		w.deleteBinding(have, "")
	case model.ActionRestore:
		w.restoreOriginals(have)
	case model.ActionOrphan:
		w.applyDependencies(have, nil, false)
		released := have.Copy()
		model.Claim(released, model.PolicyKey{})
		w.writeBinding(have, released)
	case model.ActionApply:
		w.applyClaimed(object, d.Policy, have)
	}
	if w.writes > before {
		w.tell("  template %s %s/%s: %s, %s", key.Kind.Kind, key.Namespace, key.Name, d.Action, d.Reason)
	}
}

// placeable are the clusters that resources can go to.
func (w *world) placeable() []policy.Member {
	var all []clusterv1alpha1.Cluster
	for _, m := range w.members {
		if m.Cluster != nil {
			all = append(all, *m.Cluster)
		}
	}
	return policy.MembersOf(all)
}

func (w *world) applyClaimed(object *unstructured.Unstructured, p *policy.Policy, have *model.Binding) {
	if have == nil && w.deletedNamespaces[object.GetNamespace()] {
		return // the API server refuses to create a binding
	}
	content, err := template.ContentOf(object, p)
	if err != nil {
		w.t.Fatal(err)
	}
	before := have
	if have == nil {
		t := model.TemplateOf(object)
		before = template.FormerBinding(t, object.GetUID(), w.worksOf(t.Key().Binding()))
	}
	want, err := template.DesiredBinding(model.TemplateOf(object), object.GetUID(), p, w.placeable(), content, before)
	if err != nil {
		w.t.Fatal(err)
	}
	bound := w.writeBinding(have, want)
	var needed []model.TemplateKey
	if bound.Spec.PropagateDeps {
		needed = manifest.Dependencies(object)
	}
	w.applyDependencies(bound, needed, false)
}

func (w *world) applyDependencies(by *model.Binding, needed []model.TemplateKey, restore bool) {
	find := func(key client.ObjectKey) *model.Binding { return w.bindings[key] }
	wanted := map[client.ObjectKey]bool{}
	for _, key := range needed {
		name := client.ObjectKey{Namespace: key.Namespace, Name: model.BindingName(key.Kind, key.Name)}
		wanted[name] = true
		object, have := w.templates[key], w.bindings[name]
		if object == nil || have != nil && have.GetDeletionTimestamp() != nil || have == nil && w.deletedNamespaces[key.Namespace] {
			continue
		}
		dependency := have
		if have == nil {
			dependency = template.NewDependency(model.TemplateOf(object), object.GetUID())
		}
		w.writeBinding(have, template.WithDependents(dependency, find, by))
	}
	for _, key := range sortedKeys(w.bindings) {
		dependency := w.bindings[key]
		if wanted[key] || dependency.GetDeletionTimestamp() != nil || !model.IsRequiredBy(dependency, map[string]bool{by.Path(): true}) {
			continue
		}
		switch want := template.WithoutDependent(dependency, find, by, restore); {
		case template.IsKept(want):
			w.writeBinding(dependency, want)
		case restore:
			w.restoreOriginals(dependency)
		default:
			w.deleteBinding(dependency, model.AnnotationReleased)
		}
	}
}

func (w *world) restoreOriginals(have *model.Binding) {
	w.applyDependencies(have, nil, true)
	w.deleteBinding(have, model.AnnotationRestore)
}

// deleteBinding sets the annotation and then deletes, in two writes.
func (w *world) deleteBinding(have *model.Binding, annotation string) {
	if annotation != "" {
		want := have.Copy()
		want.SetAnnotations(model.MergeKeys(have.GetAnnotations(), nil, map[string]string{annotation: "true"}))
		have = w.writeBinding(have, want)
	}
	w.write()
	deleted := have.Copy()
	deleted.SetDeletionTimestamp(&metav1.Time{Time: w.now})
	w.bindings[client.ObjectKeyFromObject(deleted.Object)] = deleted
}

// reconcileBinding does what the controller of bindings does.
func (w *world) reconcileBinding(key client.ObjectKey) {
	b := w.bindings[key]
	o := binding.Observed{Binding: b, Template: w.templates[model.TemplateKeyOf(b)], Works: w.worksOf(key)}
	if b.GetDeletionTimestamp() != nil && w.deletedNamespaces[key.Namespace] {
		o.Template = nil
	}
	d := binding.Decide(o)
	if d.Err != nil {
		w.t.Fatal(d.Err)
	}
	w.applyWorks(key, o, d)
	if b.GetDeletionTimestamp() != nil && d.KeepsAll() {
		var dependencies []*model.Binding
		for _, other := range w.bindings {
			if model.IsRequiredBy(other, map[string]bool{b.Path(): true}) {
				dependencies = append(dependencies, other)
			}
		}
		if len(o.Works) == 0 && binding.AwaitsDependencies(b, dependencies) {
			return
		}
		w.write()
		delete(w.bindings, key)
		left := ""
		if n := len(o.Works); n > 0 {
			left = fmt.Sprintf(", and its %d Works stay", n)
		}
		w.tell("  binding %s: gone%s", key, left)
		return
	}
	if b.GetDeletionTimestamp() != nil {
		return
	}
	status, requeueAfter := binding.AggregateStatus(b, o.Works, d.Source, w.now)
	if requeueAfter > 0 {
		if w.requeueAfter == 0 || requeueAfter < w.requeueAfter {
			w.requeueAfter = requeueAfter
		}
		return
	}
	if equality.Semantic.DeepEqual(*b.Status, status) {
		return
	}
	w.write()
	reported := b.Copy()
	*reported.Status = status
	w.bindings[key] = reported
	if c := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionFullyApplied); c != nil {
		w.tell("  binding %s: %s %s: %s", key, c.Status, c.Reason, c.Message)
	}
}

// worksOf are the Works of a binding, by cluster.
func (w *world) worksOf(key client.ObjectKey) map[string]*workv1alpha1.Work {
	all := map[string]*workv1alpha1.Work{}
	for _, work := range w.works {
		if slices.Contains(model.BindingIndexValues(work), model.BindingPath(key)) {
			cluster, _ := model.ClusterOf(work.Namespace)
			all[cluster] = work
		}
	}
	return all
}

// reconcileUnbound does what the controller of bindings does with the Works of a binding that is gone.
func (w *world) reconcileUnbound(key client.ObjectKey) {
	o := binding.Observed{Works: w.worksOf(key)}
	for template := range w.templates {
		if template.Binding() == key && !w.deletedNamespaces[key.Namespace] {
			return
		}
	}
	w.applyWorks(key, o, binding.DecideUnbound(o.Works, false))
}

// applyWorks carries out the steps of a binding.
func (w *world) applyWorks(key client.ObjectKey, o binding.Observed, d binding.Decision) {
	for _, step := range d.Steps {
		have := o.Works[step.Object.Cluster]
		before := w.writes
		switch step.Action {
		case model.ActionCreate:
			w.writeWork(w.works[client.ObjectKeyFromObject(step.Work)], step.Work)
		case model.ActionUpdate, model.ActionKeep:
			w.writeWork(have, step.Work)
		case model.ActionDelete:
			if have.DeletionTimestamp.IsZero() {
				w.writeWork(have, step.Work)
				w.deleteWork(step.Work)
			}
		}
		if w.writes > before {
			w.tell("  binding %s: %s Work in %s, %s", key, step.Action, step.Object.Cluster, step.Reason)
			o.Works[step.Object.Cluster] = w.works[client.ObjectKeyFromObject(step.Work)]
		}
	}
}

func (w *world) deleteWork(have *workv1alpha1.Work) {
	have = w.works[client.ObjectKeyFromObject(have)]
	deleted := have.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.writeWork(have, deleted)
}

// reconcileWork does what the controller of Works does.
func (w *world) reconcileWork(key client.ObjectKey) {
	have := w.works[key]
	name, _ := model.ClusterOf(key.Namespace)
	member := w.members[name]
	o := work.Observed{Hub: hubID, Work: have, Cluster: member.Cluster, Connected: true}
	if !have.DeletionTimestamp.IsZero() {
		for _, request := range model.BindingRequests(w.t.Context(), have) {
			o.Binding = w.bindings[request.NamespacedName]
		}
	}
	if hold := work.Hold(o); hold != nil {
		if status := work.HeldStatus(o, *hold, w.now); status != nil {
			w.reportWork(have, *status, fmt.Sprintf("held, %s", hold))
		}
		return
	}
	object := work.Object{Manifest: &unstructured.Unstructured{}, Original: w.originals[key]}
	if err := object.Manifest.UnmarshalJSON(have.Spec.Workload.Manifests[0].Raw); err != nil {
		w.t.Fatal(err)
	}
	object.Live = member.objects[model.KeyOf(object.Manifest)]
	if object.Live == nil {
		object.Removed = member.removed[model.KeyOf(object.Manifest)]
	}
	step := work.Decide(o, object)
	said := fmt.Sprintf("%s %s, %s", step.Action, step.Object, step.Reason)
	if have.DeletionTimestamp.IsZero() {
		if step.Action == model.ActionLeave || step.Action == model.ActionWait {
			w.reportWork(have, work.WithApplied(have, metav1.ConditionFalse, step.Reason, w.now), said)
			return
		}
		object.Live = w.applyStep(key, member, object, step)
		if step.Action != model.ActionNone {
			w.tell("  work %s: %s", key.Namespace, said)
		}
		status := work.StepStatus(have, object, step.Action)
		w.reportWork(have, work.AppliedStatus(have, name, []workv1alpha1.ManifestStatus{*status}, w.now), "")
		return
	}
	switch work.DeletionOf(o) {
	case model.ActionKeep, model.ActionAbandon:
		said = fmt.Sprintf("%s %s", work.DeletionOf(o), step.Object)
	default:
		w.applyStep(key, member, object, step)
	}
	if work.DeletionOf(o) != model.ActionKeep && w.originals[key] != nil {
		w.write()
		delete(w.originals, key)
	}
	w.write()
	delete(w.works, key)
	w.tell("  work %s: %s", key.Namespace, said)
}

// applyStep carries out the step of a Work, and returns the object as the member has it then.
func (w *world) applyStep(key client.ObjectKey, member *cluster, object work.Object, step work.Step) *unstructured.Unstructured {
	id, desired := model.KeyOf(object.Manifest), step.Desired
	switch step.Action {
	case model.ActionNone:
		return object.Live
	case model.ActionDelete:
		w.write()
		delete(member.objects, id)
		return nil
	case model.ActionTakeOver:
		if !work.EqualForUsers(object.Live, w.accept(object.Live, desired, model.FieldOwner)) && w.originals[key] == nil {
			w.write()
			w.originals[key] = object.Live.DeepCopy()
		}
	case model.ActionOrphan, model.ActionRestore:
		if desired == nil {
			desired = object.Live.DeepCopy()
			desired.SetLabels(model.MergeKeys(desired.GetLabels(), model.OwnershipLabels))
		}
	}
	w.write()
	member.objects[id] = w.accept(object.Live, desired, model.FieldOwner)
	return member.objects[id]
}

func (w *world) reportWork(have *workv1alpha1.Work, status workv1alpha1.WorkStatus, said string) {
	if equality.Semantic.DeepEqual(have.Status, status) {
		return
	}
	w.write()
	reported := have.DeepCopy()
	reported.Status = status
	w.works[client.ObjectKeyFromObject(have)] = reported
	if said != "" {
		w.tell("  work %s: %s", have.Namespace, said)
	}
}

// reconcileCluster does what the controller of Clusters does with one that is being deleted.
func (w *world) reconcileCluster(member *cluster) {
	if member.Cluster == nil || member.DeletionTimestamp.IsZero() {
		return
	}
	left := 0
	for _, key := range sortedKeys(w.works) {
		if key.Namespace != model.ExecutionNamespace(member.Name) {
			continue
		}
		left++
		if w.works[key].DeletionTimestamp.IsZero() {
			w.deleteWork(w.works[key])
			w.tell("  cluster %s: delete Work", member.Name)
		}
	}
	if left == 0 {
		w.write()
		w.tell("  cluster %s: gone", member.Name)
		member.Cluster = nil
	}
}

// reportPolicy does what the controller of policies does.
func (w *world) reportPolicy(p *policy.Policy) {
	var bindings []*model.Binding
	taken := map[string]bool{}
	for _, b := range w.bindings {
		if model.ClaimOf(b) == p.Key() {
			bindings, taken[b.Path()] = append(bindings, b), true
		}
	}
	for _, b := range w.bindings {
		if p.Spec.PropagateDeps && model.IsRequiredBy(b, taken) {
			bindings = append(bindings, b)
		}
	}
	is, reason := policy.Count(p, slices.Clone(bindings), w.placeable()).Condition(p)
	said := fmt.Sprintf("%s %s", is, reason)
	if w.ready[p.Key()] == said {
		return
	}
	w.write()
	w.ready[p.Key()] = said
	w.tell("  policy %s: %s", p.Key(), said)
}

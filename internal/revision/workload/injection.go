package workload

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/injection"
)

// untilInjected holds workloads whose pods would be refused, or would come up without the sidecar of the target.
func untilInjected(p *planner) *passage.Reason { return p.injectionHold() }

func (o Observed) injectionHold() *passage.Reason {
	if o.reportedInjection != nil {
		return o.reportedInjection
	}
	ways := slices.Sorted(maps.Keys(o.Injection))
	for _, way := range ways {
		if result := o.Injection[way]; result.Verdict == injection.Fails {
			return passage.Hold(v1.ReasonInjectionFailed,
				"IstioRevision %s does not inject pods with %s: %s; no workload moves until it does: check its istiod, "+
					"and the Service and the caBundle of the webhook that selects such pods",
				o.Target.Name, way, result.Answer)
		}
	}
	for _, way := range ways {
		if result := o.Injection[way]; result.Verdict != injection.Injects {
			return passage.Hold(v1.ReasonInjectionNotChecked,
				"cannot check that IstioRevision %s injects pods with %s: %s; no workload moves until that is checked: "+
					"let the operator create pods there as dry runs, or move workloads without this check by annotation %s=true on Istio %s",
				o.Target.Name, way, result.Answer, v1.AnnotationSkipInjectionCheck, o.Istio.Name)
		}
	}
	return nil
}

// nextInjectionCheck is when a check that holds the migration is repeated; zero for none.
func (o Observed) nextInjectionCheck() time.Time {
	var next time.Time
	for _, result := range o.Injection {
		next = earliest(next, result.RetryAt)
	}
	return next
}

// WithReportedInjection takes from the status what the operator has found out about the injector of the target. Commands need
// no permission to create pods then.
func (o Observed) WithReportedInjection() Observed {
	reported := meta.FindStatusCondition(o.Istio.Status.Conditions, string(v1.ConditionWorkloadsMigrated))
	if reported == nil || reported.Status != metav1.ConditionFalse || reported.ObservedGeneration != o.Istio.Generation {
		return o
	}
	switch reason := v1.Reason(reported.Reason); reason {
	case v1.ReasonInjectionFailed, v1.ReasonInjectionNotChecked:
		o.reportedInjection = passage.Hold(reason, "%s", reported.Message)
	}
	return o
}

// injectionRequest is what to check before steps of a plan start: every way by which the pods of any of them select their
// injector, not only of those that start now. Tags that have yet to move to the target still lead to another revision.
func (p *planner) injectionRequest(plan passage.Plan) injection.Request {
	used := map[injection.Way]bool{}
	for i := range plan.Steps {
		if step := &plan.Steps[i]; step.State == passage.Pending {
			used[p.wayAfter(step.Object)] = true
		}
	}
	for i := range p.Tags {
		if tag := &p.Tags[i]; tag.Status.IstioRevision != p.Target.Name {
			delete(used, injection.Way(tag.Name))
			if tag.Name == v1.DefaultRevision {
				delete(used, injection.Default)
			}
		}
	}
	request := injection.Request{
		Istio: p.Istio.Name, Revision: p.Target.Name,
		Ways: slices.Sorted(maps.Keys(used)), Namespaces: map[injection.Way][]string{},
	}
	neutral := p.namespacesThatLeaveChoice()
	for _, way := range request.Ways {
		request.Namespaces[way] = append(neutral, p.namespacesThatSelect(way)...)
	}
	return request
}

// wayAfter is how pods select their injector when the object has moved.
func (p *planner) wayAfter(object passage.Object) injection.Way {
	if object.Kind == kindNamespace {
		return injection.Way(p.Target.Name)
	}
	w := p.workload(p.find(object))
	if w.match.revisionMatch == outdated {
		return injection.Way(p.Target.Name)
	}
	return wayOf(w.choice)
}

func wayOf(choice usage.Choice) injection.Way {
	if choice.Label == v1.LabelRevision {
		return injection.Way(choice.Name)
	}
	return injection.Default
}

// namespacesThatLeaveChoice are those in which a pod selects its injector by its own label: that of the control plane first,
// where policies for workloads apply least.
func (p *planner) namespacesThatLeaveChoice() []string {
	var names []string
	for _, name := range p.namespaceNames() {
		if injection.LeavesChoice(name, p.Inventory.Namespaces[name].Labels) {
			names = append(names, name)
		}
	}
	return slices.Clip(names)
}

// namespacesThatSelect are those in which every pod selects its injector in that way.
func (p *planner) namespacesThatSelect(way injection.Way) []string {
	var names []string
	for _, name := range p.namespaceNames() {
		if choice := usage.Choose(p.Inventory.Namespaces[name].Labels, nil); choice.OfNamespace && wayOf(choice) == way {
			names = append(names, name)
		}
	}
	return names
}

func (p *planner) namespaceNames() []string {
	system := p.Istio.Spec.Namespace
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(p.Inventory.Namespaces)), func(name string) bool { return name == system })
	if _, found := p.Inventory.Namespaces[system]; found {
		names = slices.Insert(names, 0, system)
	}
	return names
}

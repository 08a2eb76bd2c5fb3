package forecast

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// statusPlan collects the steps of all that a policy takes.
type statusPlan struct {
	hub     *hubState
	subject *policy.Policy
	held    bool
	steps   []passage.Step
	// included are the bindings, by path, that have their steps.
	included map[string]bool
	// unread are the kinds that could not be listed.
	unread map[schema.GroupVersionKind]bool
}

func (s *statusPlan) add(t model.Template, version string, b *model.Binding) {
	s.steps = append(s.steps, stepsOf(t, version, b, s.hub.unknownStates(), s.held)...)
}

// addSelected adds the templates that the policy selects, and no other policy takes.
func (s *statusPlan) addSelected(ctx context.Context, reader client.Reader) {
	s.unread = map[schema.GroupVersionKind]bool{}
	for kind := range s.subject.Kinds() {
		failed := func(err error) {
			s.unread[kind] = true
			s.steps = append(s.steps, passage.Step{
				Object: s.subject.Object(), Action: model.ActionSelect, State: passage.Failed, Uncounted: true, Reason: passage.Because(model.ReasonNotFollowed, "%v", err),
			})
		}
		err := forEach(ctx, reader, &unstructured.UnstructuredList{}, kind, s.subject.Namespace, func(o client.Object) {
			t := model.TemplateOf(o)
			if s.hub.isTakenInOtherVersion(t) {
				return
			}
			b := s.hub.bindingOf(t)
			chosen := policy.Select(t, s.hub.policies, model.ClaimOf(b))
			if o.GetDeletionTimestamp() != nil || chosen == nil || chosen.Key() != s.subject.Key() {
				return
			}
			version, err := versionOf(o.(*unstructured.Unstructured))
			if err != nil {
				failed(err)
				return
			}
			if b != nil {
				s.included[b.Path()] = true
				if policy.IsOutdated(b, s.subject, s.hub.members) {
					b = nil
				}
			}
			s.add(t, version, b)
		})
		if err != nil {
			failed(err)
		}
	}
}

// addReleased adds the templates that the policy has taken, and takes no longer.
func (s *statusPlan) addReleased() {
	for _, b := range s.hub.bindings {
		t := model.TemplateOfBinding(b)
		if model.ClaimOf(b) != s.subject.Key() || s.included[b.Path()] || s.unread[t.Key().Kind] {
			continue
		}
		s.included[b.Path()] = true
		step := passage.Step{Object: t.Object(), Action: model.ActionBind, State: passage.Running, Reason: notReleased}
		if s.subject.Paused {
			// The binding of a template that is deleted stays meanwhile.
			step.State, step.Reason = passage.Pending, *s.subject.Hold()
		}
		s.steps = append(s.steps, step)
	}
}

// addDependencies adds the templates that those of the policy require. Who may not read a kind of them has to trust what the
// operator has reported last.
func (s *statusPlan) addDependencies(ctx context.Context, reader client.Reader) error {
	taken := maps.Clone(s.included)
	for _, b := range s.hub.bindings {
		if taken[b.Path()] || !model.IsRequiredBy(b, taken) {
			continue
		}
		key := model.TemplateKeyOf(b)
		s.included[b.Path()] = true
		template, version := newTemplate(key.Kind), ""
		err := reader.Get(ctx, key.ObjectKey, template)
		switch {
		case apierrors.IsNotFound(err) || err == nil && template.GetDeletionTimestamp() != nil:
			s.steps = append(s.steps, passage.Step{Object: model.TemplateOfBinding(b).Object(), Action: model.ActionBind, State: passage.Running, Reason: deletionNotSeen})
			continue
		case apierrors.IsForbidden(err) || meta.IsNoMatchError(err):
		case err != nil:
			return fmt.Errorf("get %s %s: %w", key.Kind.Kind, key.ObjectKey, err)
		default:
			if version, err = versionOf(template); err != nil {
				return err
			}
		}
		s.add(model.TemplateOfBinding(b), version, b)
	}
	return nil
}

// unknownStates are the clusters that cannot be reached, or could not be until a moment ago: what has become of their objects
// meanwhile is unknown.
func (v *hubState) unknownStates() map[string]passage.Reason {
	if v.unknown != nil {
		return v.unknown
	}
	v.unknown = map[string]passage.Reason{}
	for name, c := range v.clusters {
		synced := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionSynced)
		switch {
		case !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady):
			v.unknown[name] = model.UnreachableReason(c)
		case c.Status.ObservedGeneration < c.Generation:
			v.unknown[name] = passage.Because(model.ReasonChecking, "the operator has not reported on the latest spec of cluster %s yet: is it running?", name)
		case synced != nil && synced.Status != metav1.ConditionTrue:
			v.unknown[name] = model.CheckingReason(name)
		}
	}
	return v.unknown
}

func newTemplate(kind schema.GroupVersionKind) *unstructured.Unstructured {
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(kind)
	return template
}

// versionField is where a template that was reduced has its version. No object of an API server has such a field.
const versionField = "fairlead.dev/version"

// Reduce leaves of a template only its metadata and its version, for a cache. A template whose version is unknown stays as it is.
func Reduce(template *unstructured.Unstructured) *unstructured.Unstructured {
	version, err := versionOf(template)
	if err != nil {
		return template
	}
	reduced := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": template.GetAPIVersion(), "kind": template.GetKind(), "metadata": template.Object["metadata"], versionField: version,
	}}
	reduced.SetManagedFields(nil)
	reduced.SetAnnotations(nil)
	return reduced
}

func versionOf(template *unstructured.Unstructured) (string, error) {
	if version, ok := template.Object[versionField].(string); ok {
		return version, nil
	}
	return manifest.Version(template)
}

// DependencyKinds are the kinds of templates that others may require.
func DependencyKinds() []client.Object {
	var all []client.Object
	for _, kind := range manifest.DependencyKinds() {
		all = append(all, newTemplate(kind))
	}
	return all
}

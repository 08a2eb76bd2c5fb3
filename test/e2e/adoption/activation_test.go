package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// A Lazy policy that has changed takes effect on a resource when its template changes, also if the operator was restarted meanwhile.
func TestLazyActivation(t *testing.T) {
	s := newStage(t)
	p := policy("v1", "ConfigMap", func(p *policyv1alpha1.PropagationSpec) { p.ActivationPreference = policyv1alpha1.ActivationLazy })
	s.create(t, s.hub, p)
	first, second := configMap("first", "a", "1"), configMap("second", "a", "1")
	s.create(t, s.hub, first, second)
	for _, binding := range []string{"first-configmap", "second-configmap"} {
		s.says(t, binding, applied, "applied in cluster "+member1)
	}
	s.changePolicy(t, p, func(p *policyv1alpha1.PropagationSpec) { p.Placement = to(member2) })
	for _, binding := range []string{"first-configmap", "second-configmap"} {
		s.follows(t, binding, member1, "the resource follows the earlier policy until its template changes, because spec.activationPreference of policy "+s.namespace+"/everything is Lazy")
	}
	s.tells(t, p.Name, "Applied", "2 of them follow the earlier policy until their templates change")

	s.operator.Kill()
	if err := s.operate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.change(t, s.hub, first, func() { first.Data["a"] = "2" })
	s.says(t, "first-configmap", applied, "applied in cluster "+member2)
	s.gone(t, s.members[member1], configMap("first"))
	s.tells(t, p.Name, "Applied", "1 of them follow the earlier policy until their templates change")
	s.follows(t, "second-configmap", member1, "the resource follows the earlier policy")

	const says = "follows the earlier policy until its template changes"
	s.enter(t, 0, "plan pp everything -n NS -o wide", says, "ConfigMap NS/second")
	s.shows(t, 0, "status pp everything -n NS -o wide", says, "ConfigMap NS/second")
	s.changePolicy(t, p, func(p *policyv1alpha1.PropagationSpec) { p.ActivationPreference = "" })
	s.says(t, "second-configmap", applied, "applied in cluster "+member2)
}

// A template that is older than a Lazy policy waits for its first change.
func TestLazyActivationOfOlderTemplate(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	template := configMap("it", "a", "1")
	s.create(t, s.hub, template)
	s.read(t, s.hub, template)
	p := policy("v1", "ConfigMap", func(p *policyv1alpha1.PropagationSpec) { p.ActivationPreference = policyv1alpha1.ActivationLazy })
	// Times have whole seconds: until the next one, the policy would not be later.
	wait.Until(t, func(ctx context.Context) error {
		later := configMap("later")
		later.Namespace = s.namespace
		if err := s.hub.Create(ctx, later, client.DryRunAll); err != nil {
			return err
		}
		if !later.CreationTimestamp.After(template.CreationTimestamp.Time) {
			return errors.New("it is still the same second")
		}
		return nil
	})
	s.create(t, s.hub, p)
	s.says(t, "it-configmap", "LazyActivation", "does not place the resource until its template changes")
	s.tells(t, p.Name, "LazyActivation", "1 wait until their templates change")
	if err := s.members[member1].Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "it"}, configMap("it")); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
	s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
	s.says(t, "it-configmap", applied, "applied in cluster "+member1)
}

// follows waits until a binding goes to one member, and says why in its condition Scheduled.
func (s *stage) follows(t testing.TB, binding, member, says string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var b workv1alpha2.ResourceBinding
		if err := s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: binding}, &b); err != nil {
			return err
		}
		for _, c := range b.Status.Conditions {
			if c.Type == workv1alpha2.ConditionScheduled && strings.Contains(c.Message, says) && len(b.Spec.Clusters) == 1 && b.Spec.Clusters[0].Name == member {
				return nil
			}
		}
		return fmt.Errorf("goes to %v: %+v", b.Spec.Clusters, b.Status.Conditions)
	})
}

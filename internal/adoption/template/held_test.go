package template

import (
	"slices"
	"testing"

	"github.com/fairlead/fairlead/api/fairlead"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// The binding of a template that is deleted while its policy is paused stays until the policy is resumed, which enqueues the template.
func TestTemplateDeletedWhileItsPolicyIsPaused(t *testing.T) {
	h := newHub(t)
	h.reconcile(t)
	h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
		p.SetAnnotations(map[string]string{fairlead.AnnotationPaused: "true"})
	})
	h.reconcile(t)
	h.remove(t, adoptiontest.Object(t, cart))
	if written := h.reconcile(t); len(written) > 0 {
		t.Fatalf("written while the policy is paused: %v", written)
	}
	h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) { p.SetAnnotations(nil) })
	if enqueued := h.reconciler.templatesOf(t.Context(), policy.Of(h.policy(t))); !slices.Contains(enqueued, cartKey) {
		t.Errorf("the policy enqueues %v", enqueued)
	}
	h.reconcile(t)
	if b := h.read(t, binding); b.GetDeletionTimestamp() == nil {
		t.Error("the binding stays after the policy is resumed")
	}
}

package policy

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// When a policy takes effect on a template, and on which one it waits.
func TestActivate(t *testing.T) {
	changed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	earlier := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}}
	now := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}}
	bound := func(placement *policyv1alpha1.Placement, version string) *model.Binding {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
		b.Spec.Placement, b.Spec.ConflictResolution = placement, policyv1alpha1.ConflictAbort
		model.SetActivation(b, version, false)
		return b
	}
	former := bound(nil, "")
	former.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
	for name, c := range map[string]struct {
		immediate bool
		have      *model.Binding
		created   time.Time
		// want is whether it is deferred and unplaced, and its clusters.
		want string
	}{
		"not Lazy":                                    {true, bound(&earlier, "v1"), changed.Add(-time.Hour), "false false [east]"},
		"the template has not changed":                {false, bound(&earlier, "v1"), changed.Add(-time.Hour), "true false [west]"},
		"the template has changed":                    {false, bound(&earlier, "v0"), changed.Add(-time.Hour), "false false [east]"},
		"the policy is in force already":              {false, bound(&now, "v1"), changed.Add(-time.Hour), "false false [east]"},
		"changed back to what is in force":            {false, bound(&now, "v0"), changed.Add(-time.Hour), "false false [east]"},
		"a policy that becomes Lazy as it changes":    {false, bound(&earlier, ""), changed.Add(-time.Hour), "true false [west]"},
		"a template that was there before":            {false, nil, changed.Add(-time.Second), "true true []"},
		"a template of the same second":               {false, nil, changed, "false false [east]"},
		"a template that was created since":           {false, nil, changed.Add(time.Second), "false false [east]"},
		"a template that does not exist yet":          {false, nil, time.Time{}, "false false [east]"},
		"one that was there, and still waits":         {false, bound(nil, "v1"), changed.Add(-time.Second), "true true []"},
		"one that was there, and has changed":         {false, bound(nil, "v0"), changed.Add(-time.Second), "false false [east]"},
		"one that others require, and is older":       {false, bound(nil, ""), changed.Add(-time.Second), "true true []"},
		"a binding that somebody has deleted":         {false, former, changed.Add(-time.Hour), "false false [east]"},
		"one that others require, and is created now": {false, bound(nil, ""), changed.Add(time.Second), "false false [east]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Policy{Namespace: "shop", Name: "p", ChangedAt: changed, Spec: policyv1alpha1.PropagationSpec{Placement: now, ActivationPreference: policyv1alpha1.ActivationLazy}}
			if c.immediate {
				p.Spec.ActivationPreference = ""
			}
			a := p.Activate(c.have, "v1", c.created)
			clusters := []string{}
			if affinity := a.Spec.Placement.ClusterAffinity; affinity != nil {
				clusters = affinity.ClusterNames
			}
			if got := fmt.Sprint(a.Deferred, a.Unplaced, clusters); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// All that a binding has of its policy is deferred, but for the suspension.
func TestActivateKeepsWhatTheBindingHas(t *testing.T) {
	have := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
	*have.Spec = workv1alpha2.ResourceBindingSpec{
		Placement: &policyv1alpha1.Placement{}, ConflictResolution: policyv1alpha1.ConflictAbort, PreserveResourcesOnDeletion: ptr.To(true),
		DeletionProtection: policyv1alpha1.DeletionProtectionDisabled, PropagateDeps: true, SchedulerName: "a",
	}
	model.SetActivation(have, "v1", false)
	suspension := &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
	p := &Policy{Spec: policyv1alpha1.PropagationSpec{
		ActivationPreference: policyv1alpha1.ActivationLazy, ConflictResolution: policyv1alpha1.ConflictOverwrite, SchedulerName: "b", Suspension: suspension,
	}}
	a := p.Activate(have, "v1", time.Time{})
	if !a.Deferred || !a.isRequested(have.Spec) || a.Spec.Suspension != suspension {
		t.Errorf("got %+v", a.Spec)
	}
	if p.Spec.ConflictResolution != policyv1alpha1.ConflictOverwrite {
		t.Error("the policy itself is changed")
	}
}

func TestSpecChangedAt(t *testing.T) {
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	entry := func(fields, subresource string, after time.Duration) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(created.Add(after))
		return metav1.ManagedFieldsEntry{Time: &at, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	p := &policyv1alpha1.PropagationPolicy{}
	p.CreationTimestamp = metav1.NewTime(created)
	if got := Of(p).ChangedAt; !got.Equal(created) {
		t.Errorf("without managedFields: %s", got)
	}
	p.ManagedFields = []metav1.ManagedFieldsEntry{
		entry(`{"f:spec":{"f:placement":{}}}`, "", time.Minute), entry(`{"f:metadata":{"f:annotations":{}}}`, "", 2*time.Minute),
		entry(`{"f:status":{}}`, "status", 3*time.Minute),
	}
	if got := Of(p).ChangedAt; !got.Equal(created.Add(time.Minute)) {
		t.Errorf("by the writer of the spec: %s", got)
	}
}

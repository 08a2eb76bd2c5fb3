package controlplane

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestStatusWhileBeingDeleted(t *testing.T) {
	const ours, theirs = v1.FinalizerUninstall, "example.com/backup"
	removed := func(o *Observed) { o.Istiod = missing(o.Istiod.Wanted) }
	cases := map[string]struct {
		finalizers []string
		change     func(*Observed)
		want       string
	}{
		"something is installed": {
			[]string{ours, theirs}, func(*Observed) {},
			"BeingDeleted: False IstioRevision a is being deleted",
		},
		"nothing is installed any more, but others keep it": {
			[]string{theirs}, removed,
			"BeingDeleted: False what was installed has been removed; it goes when others have removed their finalizers: example.com/backup",
		},
		"somebody has taken our finalizer away": {
			[]string{theirs}, func(*Observed) {},
			"BeingDeleted: False IstioRevision a is being deleted",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := healthy(makeRevision("a", "v1.24.0").reconciled().deleting()).with(c.change)
			in.Revision.Finalizers = c.finalizers
			plan := Plan(in)
			if plan.Hold != nil && len(plan.Steps) > 0 {
				t.Errorf("held up is the removal: %v", plan.Steps)
			}
			status := statusOf(in, plan, nil, epoch)
			reconciled := meta.FindStatusCondition(status.Conditions, string(v1.ConditionReconciled))
			if diff := cmp.Diff(c.want, fmt.Sprintf("%s: %s %s", status.State, reconciled.Status, reconciled.Message)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

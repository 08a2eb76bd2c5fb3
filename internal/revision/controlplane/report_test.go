package controlplane

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
			"BeingDeleted: False uninstalled; waiting for finalizers of other controllers: example.com/backup",
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

func TestStatusThatCannotBeKnown(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cases := map[string]struct {
		change func(*Observed)
		kind   v1.ConditionType
		want   string
	}{
		"istiod may not be read": {
			func(o *Observed) { o.DeploymentsErr = apierrors.NewForbidden(deployments, "istiod", errors.New("no")) }, v1.ConditionReady,
			`Unknown ReadinessCheckFailed: deployments.apps "istiod" is forbidden: no; let the operator read Deployments, as the Fairlead chart does`,
		},
		"nobody answers": {
			func(o *Observed) { o.DeploymentsErr = errors.New("dial tcp: connection refused") }, v1.ConditionReady,
			"Unknown ReadinessCheckFailed: reading istiod's Deployment failed (no answer from the API server) " +
				"and will be tried again; details are in the operator's log",
		},
		"nothing is installed, whatever can be read": {
			func(o *Observed) { o.Istiod, o.DeploymentsErr = missing(o.Istiod.Wanted), errors.New("no") }, v1.ConditionReady,
			"False IstiodNotReady: istiod is not installed; the condition Reconciled says why",
		},
		"pods may not be seen": {
			func(o *Observed) { o.Usage.Forbidden = []string{"namespaces", "pods"} }, v1.ConditionInUse,
			"Unknown UsageCheckFailed: usage is unknown, because the API server refuses to list namespaces and pods; " +
				"grant the operator list and watch on these in all namespaces, as the Fairlead chart does. Until then no revision is pruned",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := healthy(makeRevision("a", "v1.24.0").reconciled()).with(c.change)
			got := meta.FindStatusCondition(statusOf(in, Plan(in), nil, epoch).Conditions, string(c.kind))
			if diff := cmp.Diff(c.want, fmt.Sprintf("%s %s: %s", got.Status, got.Reason, got.Message)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The namespace may be known to be gone while the cache still has what was in it.
func TestStatusWithoutNamespace(t *testing.T) {
	in := healthy(makeRevision("a", "v1.24.0").reconciled()).with(func(o *Observed) { o.Namespace = false })
	ready := meta.FindStatusCondition(statusOf(in, Plan(in), nil, epoch).Conditions, string(v1.ConditionReady))
	if got := fmt.Sprintf("%s %s: %s", ready.Status, ready.Reason, ready.Message); got != "False IstiodNotReady: namespace istio-system does not exist" {
		t.Error(got)
	}
}

// The charts of releases that were installed before charts were recorded are recorded, those of others only when they are
// installed.
func TestStatusRecordsCharts(t *testing.T) {
	of := func(name, digest string) v1.ChartDigest {
		return v1.ChartDigest{Name: name, Version: "v1.24.0", Digest: digest}
	}
	cases := map[string]struct {
		recorded []v1.ChartDigest
		change   func(*Observed)
		want     []v1.ChartDigest
	}{
		"installed":                    {nil, func(*Observed) {}, []v1.ChartDigest{of("base", "b"), of("istiod", "i")}},
		"recorded":                     {[]v1.ChartDigest{of("istiod", "i"), of("base", "b")}, func(*Observed) {}, []v1.ChartDigest{of("istiod", "i"), of("base", "b")}},
		"not installed":                {nil, func(o *Observed) { o.Istiod.State.Exists = false }, []v1.ChartDigest{of("base", "b")}},
		"another looks after the base": {nil, func(o *Observed) { o.Base.Wanted, o.Base.Chart.Digest = nil, "" }, []v1.ChartDigest{of("istiod", "i")}},
		"the validator is the default's": {nil, func(o *Observed) {
			o.Validator = installed(wanted("istio-system", ValidatorRelease, "v1.24.0"))
			o.Validator.Chart = of("base", "b")
		}, []v1.ChartDigest{of("base", "b"), of("istiod", "i")}},
		"refused": {[]v1.ChartDigest{of("istiod", "first")}, func(o *Observed) { o.Istiod = refused(o.Istiod, "istiod") },
			[]v1.ChartDigest{of("istiod", "first"), of("base", "b")}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := healthy(makeRevision("a", "v1.24.0").reconciled())
			in.Revision.Status.Charts = c.recorded
			in.Base.Chart, in.Istiod.Chart = of("base", "b"), of("istiod", "i")
			in = in.with(c.change)
			if diff := cmp.Diff(c.want, statusOf(in, Plan(in), nil, epoch).Charts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

package policy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Each field that the schema takes and Fairlead does not support, and each that looks like one and asks for nothing.
func TestUnsupportedFields(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`:                        "",
		`{association: true}`:       "spec.association",
		`{association: false}`:      "",
		`{dependentOverrides: [a]}`: "spec.dependentOverrides",
		`{failover: {}}`:            "spec.failover",
		`{failover: {cluster: {}}}`: "spec.failover",
		`{schedulePriority: {priorityClassName: a}}`:                            "spec.schedulePriority",
		`{schedulerName: other}`:                                                "",
		`{preemption: Never}`:                                                   "",
		`{preemption: Always}`:                                                  "",
		`{activationPreference: Lazy}`:                                          "",
		`{suspension: {dispatching: true}}`:                                     "",
		`{suspension: {dispatchingOnClusters: {}}}`:                             "",
		`{suspension: {dispatchingOnClusters: {clusterNames: [east]}}}`:         "",
		`{placement: {workloadAffinity: {affinity: {groupByLabelKey: a}}}}`:     "spec.placement.workloadAffinity",
		`{placement: {workloadAffinity: {antiAffinity: {groupByLabelKey: a}}}}`: "spec.placement.workloadAffinity",
		`{placement: {clusterAffinities: [{affinityName: a}]}}`:                 "",
		`{placement: {clusterTolerations: [{operator: Exists}]}}`:               "",
		`{placement: {spreadConstraints: [{spreadByField: cluster}]}}`:          "",
		`{placement: {spreadConstraints: [{spreadByLabel: a}]}}`:                "spec.placement.spreadConstraints.spreadByLabel",
		`{placement: {clusterAffinity: {fieldSelector: {}}}}`:                   "",
		`{placement: {clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}}}}`:            "",
		`{placement: {replicaScheduling: {replicaSchedulingType: Duplicated, replicaDivisionPreference: Aggregated}}}`:             "",
		`{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}`:                  "",
		`{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}}`:                "spec.placement.replicaScheduling.replicaDivisionPreference: Aggregated",
		`{placement: {replicaScheduling: {replicaSchedulingType: Divided, weightPreference: {dynamicWeight: AvailableReplicas}}}}`: "",
		`{placement: {replicaScheduling: {replicaSchedulingType: Divided, weightPreference: {staticWeightList: [{weight: 1}]}}}}`:  "",
		`{failover: {}, association: true}`: "spec.association spec.failover",
	} {
		t.Run(spec, func(t *testing.T) {
			p := &Policy{Namespace: "shop", Name: "p"}
			if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(p.UnsupportedFields(), " "); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			is, reason := Count(p, nil, nil).Condition(p)
			if refused := is == metav1.ConditionFalse && reason.Code == model.ReasonUnsupported; refused != (want != "") {
				t.Errorf("got %s %s", is, reason)
			}
			for _, path := range p.UnsupportedFields() {
				if !strings.Contains(reason.Message, path+" is not supported: "+remedyFor(path)) {
					t.Errorf("%q does not name %s", reason.Message, path)
				}
			}
		})
	}
}

func TestUnsupportedMessage(t *testing.T) {
	p := &Policy{Namespace: "shop", Name: "p", Spec: policyv1alpha1.PropagationSpec{Failover: &policyv1alpha1.FailoverBehavior{}}}
	want := "spec.failover is not supported: remove the field; Fairlead moves no resources away from clusters that fail; until the policy is corrected, nothing is written to clusters for it"
	if got := p.Unsupported(); got.Message != want {
		t.Errorf("got %s", got.Message)
	}
}

// An abort is carried out whatever else the policy has.
func TestUnsupportedWhileAborted(t *testing.T) {
	p := &Policy{Aborted: true, Spec: policyv1alpha1.PropagationSpec{Failover: &policyv1alpha1.FailoverBehavior{}}}
	if _, reason := Count(p, nil, nil).Condition(p); reason.Code != model.ReasonAborted {
		t.Errorf("got %s", reason)
	}
}

func TestUnsupportedInBinding(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*model.Binding)
		want   string
	}{
		"nothing":        {func(*model.Binding) {}, ""},
		"components":     {func(b *model.Binding) { b.Spec.Components = []workv1alpha2.Component{{}} }, "spec.components"},
		"evictions":      {func(b *model.Binding) { b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{}} }, "spec.gracefulEvictionTasks"},
		"failover":       {func(b *model.Binding) { b.Spec.Failover = &policyv1alpha1.FailoverBehavior{} }, "spec.failover"},
		"rescheduled":    {func(b *model.Binding) { b.Spec.RescheduleTriggeredAt = &metav1.Time{} }, "spec.rescheduleTriggeredAt"},
		"not scheduling": {func(b *model.Binding) { b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)} }, "spec.suspension.scheduling"},
		"scheduling":     {func(b *model.Binding) { b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(false)} }, ""},
		"priority":       {func(b *model.Binding) { b.Spec.SchedulePriority = &workv1alpha2.SchedulePriority{} }, "spec.schedulePriority"},
		"groups":         {func(b *model.Binding) { b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{} }, "spec.workloadAffinityGroups"},
		"requirements":   {func(b *model.Binding) { b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{} }, ""},
		"of the policy": {func(b *model.Binding) {
			model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
			model.SetUnsupportedFields(b, []string{"spec.association", "spec.failover"})
		}, "spec.association is not supported: set spec.propagateDeps instead; spec.failover"},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			c.change(b)
			got := UnsupportedInBinding(b)
			if (got != nil) != (c.want != "") || got != nil && (!strings.HasPrefix(got.Message, c.want+" is not supported: ") || got.Code != model.ReasonUnsupported) {
				t.Errorf("got %v", got)
			}
		})
	}
}

package istio

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestStatus(t *testing.T) {
	resource := schema.GroupResource{Group: "sailoperator.io", Resource: "istiorevisions"}
	cases := map[string]struct {
		in         Observed
		failure    error
		state      v1.State
		active     string
		revisions  v1.RevisionSummary
		reconciled string
		ready      string
	}{
		"written, not installed": {
			in:         observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default")),
			state:      "IstiodNotReady",
			active:     "default",
			revisions:  v1.RevisionSummary{Total: 1},
			reconciled: "True Reconciled: IstioRevision default is as the spec asks",
			ready:      "False IstiodNotReady: IstioRevision default is not reconciled yet",
		},
		"what keeps the revision from being installed is told": {
			in: observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default").
				condition(v1.ConditionReconciled, metav1.ConditionFalse, v1.ReasonNamespaceNotFound, "namespace istio-system does not exist").
				condition(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonIstiodNotReady, "istiod is not installed")),
			state:      "NamespaceNotFound",
			active:     "default",
			revisions:  v1.RevisionSummary{Total: 1},
			reconciled: "True Reconciled: IstioRevision default is as the spec asks",
			ready:      "False NamespaceNotFound: IstioRevision default: namespace istio-system does not exist",
		},
		"nobody can know whether it is ready": {
			in: observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default").
				condition(v1.ConditionReconciled, metav1.ConditionTrue, v1.ReasonReconciled, "").
				condition(v1.ConditionReady, metav1.ConditionUnknown, v1.ReasonReadinessCheckFailed, "istiod's Deployment could not be read")),
			state:      "ReadinessCheckFailed",
			active:     "default",
			revisions:  v1.RevisionSummary{Total: 1},
			reconciled: "True Reconciled: IstioRevision default is as the spec asks",
			ready:      "Unknown ReadinessCheckFailed: IstioRevision default: istiod's Deployment could not be read",
		},
		"healthy": {
			in:         observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default").ready()),
			state:      v1.StateHealthy,
			active:     "default",
			revisions:  v1.RevisionSummary{Total: 1, Ready: 1},
			reconciled: "True Reconciled: IstioRevision default is as the spec asks",
			ready:      "True IstiodReady: the control plane of IstioRevision default serves",
		},
		"being deleted": {
			in:         observed(makeIstio("default").deleting().active("default"), makeRevision("default", "v1.24.0").of("default").ready()),
			state:      "BeingDeleted",
			active:     "default",
			revisions:  v1.RevisionSummary{Total: 1, Ready: 1},
			reconciled: "False BeingDeleted: Istio default is being deleted, and its revisions with it",
			ready:      "True IstiodReady: the control plane of IstioRevision default serves",
		},
		"revisions are counted, those of others are not": {
			in: observed(makeIstio("default").revisionBased(),
				makeRevision("default-v1-23-0", "v1.23.0").of("default").ready().
					condition(v1.ConditionInUse, metav1.ConditionTrue, v1.ReasonReferencedByWorkloads, ""),
				makeRevision("default-v1-24-0", "v1.24.0").of("default").
					condition(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonIstiodNotReady, "0/1 pods are ready"),
				makeRevision("other", "v1.24.0").of("other").ready()).used("default-v1-23-0"),
			state:      "IstiodNotReady",
			active:     "default-v1-24-0",
			revisions:  v1.RevisionSummary{Total: 2, Ready: 1, InUse: 1},
			reconciled: "True Reconciled: IstioRevision default-v1-24-0 is as the spec asks; kept while in use: default-v1-23-0",
			ready:      "False IstiodNotReady: IstioRevision default-v1-24-0: 0/1 pods are ready",
		},
		"a version that cannot be resolved leaves the active revision as it was": {
			in: observed(makeIstio("default").revisionBased().version("v1.27.0").active("default-v1-24-0"),
				makeRevision("default-v1-24-0", "v1.24.0").of("default").ready()).charts("v1.26.0"),
			state:     "VersionNotFound",
			active:    "default-v1-24-0",
			revisions: v1.RevisionSummary{Total: 1, Ready: 1},
			reconciled: "False VersionNotFound: there are no charts of spec.version v1.27.0; " +
				"set spec.version to the only one that exists, v1.26.0",
			ready: "True IstiodReady: the control plane of IstioRevision default-v1-24-0 serves",
		},
		"the name is taken": {
			in:    observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("other")),
			state: "NameAlreadyExists",
			reconciled: "False NameAlreadyExists: IstioRevision default belongs to Istio other; " +
				"give one of the two another name",
			ready: "False ActiveRevisionNotFound: no IstioRevision has been written for this Istio; " +
				"the condition Reconciled says why",
		},
		"paused before anything was written": {
			in:    observed(makeIstio("default").paused("true")),
			state: "Paused",
			reconciled: "False Paused: paused by annotation fairlead.dev/paused; resume with `fairlead resume istio default`; " +
				"pending: create IstioRevision default: Istio default asks for v1.24.0",
			ready: "False ActiveRevisionNotFound: no IstioRevision has been written for this Istio; " +
				"the condition Reconciled says why",
		},
		"paused with nothing waiting": {
			in:        observed(makeIstio("default").paused("true"), makeRevision("default", "v1.24.0").of("default").ready()),
			state:     v1.StateHealthy,
			active:    "default",
			revisions: v1.RevisionSummary{Total: 1, Ready: 1},
			reconciled: "True Paused: paused by annotation fairlead.dev/paused; " +
				"resume with `fairlead resume istio default`",
			ready: "True IstiodReady: the control plane of IstioRevision default serves",
		},
		"refused: the API server is quoted": {
			in:      observed(makeIstio("default")),
			failure: fmt.Errorf("create IstioRevision default: %w", apierrors.NewForbidden(resource, "default", errors.New("no"))),
			state:   "ReconcileError",
			reconciled: "False ReconcileError: create IstioRevision default: " +
				`istiorevisions.sailoperator.io "default" is forbidden: no`,
			ready: "False ActiveRevisionNotFound: no IstioRevision has been written for this Istio; " +
				"the condition Reconciled says why",
		},
		"failed in passing: nothing that changes with each attempt is quoted": {
			in:      observed(makeIstio("default")),
			failure: fmt.Errorf("create: %w", apierrors.NewInternalError(errors.New("request 8d1f timed out"))),
			state:   "ReconcileError",
			reconciled: "False ReconcileError: writing the revision failed (InternalError) and will be tried again; " +
				"details are in the operator's log",
			ready: "False ActiveRevisionNotFound: no IstioRevision has been written for this Istio; " +
				"the condition Reconciled says why",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := statusOf(c.in, Plan(c.in, epoch), c.failure, epoch)
			condition := func(text string, i int) string {
				g := got.Conditions[i]
				if g.ObservedGeneration != 1 || !g.LastTransitionTime.Time.Equal(epoch) {
					t.Errorf("condition %s has generation %d, time %s", g.Type, g.ObservedGeneration, g.LastTransitionTime)
				}
				return cmp.Diff(text, fmt.Sprintf("%s %s: %s", g.Status, g.Reason, g.Message))
			}
			for _, diff := range []string{
				cmp.Diff(c.state, got.State),
				cmp.Diff(c.active, got.ActiveRevisionName),
				cmp.Diff(&c.revisions, got.Revisions),
				condition(c.reconciled, 0),
				condition(c.ready, 1),
			} {
				if diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestStatusIsStable(t *testing.T) {
	in := observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default"))
	in.Istio.Status.WorkloadMigration = &v1.WorkloadMigrationStatus{State: "Idle"}
	first := statusOf(in, Plan(in, epoch), nil, epoch)
	in.Istio.Status = first
	second := statusOf(in, Plan(in, epoch.Add(time.Hour)), nil, epoch.Add(time.Hour))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("an hour later, with nothing changed, the status reads differently:\n%s", diff)
	}
	if second.WorkloadMigration == nil {
		t.Error("what others wrote to the status is lost")
	}
	if ownStatus(second).WorkloadMigration != nil {
		t.Error("what others wrote to the status is claimed as our own")
	}
}

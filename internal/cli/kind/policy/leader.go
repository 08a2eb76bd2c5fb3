package policy

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/operator/lease"
	"github.com/fairlead/fairlead/internal/passage"
)

// readLease reads the Lease of the passage; nil if there is none, or if the user may not read it.
func readLease(ctx context.Context, config *rest.Config) *coordinationv1.Lease {
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return nil
	}
	l, err := client.Leases(lease.Namespace).Get(ctx, lease.Name(model.Passage), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return l
}

// leaderSteps wait for an operator, if none leads the passage: what has changed since the last one did is unknown.
func leaderSteps(l *coordinationv1.Lease, subject passage.Object, now time.Time) []passage.Step {
	if l == nil || lease.IsHeld(l, now) {
		return nil
	}
	since := ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{}).UTC().Format(time.RFC3339)
	return []passage.Step{{
		Object: subject, Action: model.ActionReport, State: passage.Running, Uncounted: true,
		Reason: passage.Because(model.ReasonNoLeader, "by the Lease %s/%s, no operator leads the passage since %s, and what has changed since then is unknown: is the operator running?", l.Namespace, l.Name, since),
	}}
}

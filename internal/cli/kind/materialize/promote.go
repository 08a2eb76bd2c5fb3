package materialize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/rollout"
)

// planPromotion sets forcePromote to the hash of the rollout that is there.
func planPromotion(e environment, r connect.Resource, now time.Time) (kind.Change, error) {
	if done, err := checkPromotion(e.Observed, now); done != "" || err != nil {
		return kind.Change{Noop: done}, err
	}
	requested, next := e.Requested(), e.Next().Number
	return kind.Change{
		Show:     func(w io.Writer) { printPromotion(w, e, now) },
		Question: fmt.Sprintf("Promote generation %d?", next),
		Apply: func(ctx context.Context) error {
			if e.ForcePromoteIsStale() {
				if err := clearForcePromote(ctx, r, e.Materialize); err != nil {
					return err
				}
			}
			return setForcePromote(ctx, r, e.Materialize, requested)
		},
		Done: fmt.Sprintf("generation %d is promoted as soon as its pods are ready", next),
	}, nil
}

func setForcePromote(ctx context.Context, r connect.Resource, shown *v1alpha2.Materialize, hash string) error {
	return patchMaterialize(ctx, r, shown, func(m *v1alpha2.Materialize) error {
		if m.Status.RequestedRolloutHash != shown.Status.RequestedRolloutHash {
			return errors.New("nothing was changed, because another rollout has taken its place; run the command again")
		}
		m.Spec.ForcePromote = hash
		return nil
	})
}

// operatorTimeout is how long the operator is given to see a change.
const operatorTimeout = 10 * time.Second

// clearForcePromote removes a forcePromote from before the rollout, which the operator takes for nobody's word until it was gone.
func clearForcePromote(ctx context.Context, r connect.Resource, shown *v1alpha2.Materialize) error {
	if err := setForcePromote(ctx, r, shown, ""); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, retryInterval, operatorTimeout, true, func(ctx context.Context) (bool, error) {
		now := &v1alpha2.Materialize{}
		err := r.Get(ctx, r.Cluster.Client, now)
		return now.Status.IgnoredForcePromote == "", err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errors.New("spec.forcePromote was there before the rollout and has been removed, and the operator has not seen that: " +
			"is it running? Try again when it is")
	}
	return err
}

// checkPromotion tells why there is nothing to promote: because that is so already, or because it cannot be.
func checkPromotion(o rollout.Observed, now time.Time) (done string, err error) {
	next, refused := o.Next().Number, o.Refused()
	switch {
	case o.Promoting():
		return fmt.Sprintf("generation %d is being promoted already", next), nil
	case o.Hash == o.Completed():
		return fmt.Sprintf("there is nothing to promote: generation %d serves the current spec", o.Materialize.Status.ActiveGeneration), nil
	case o.UnknownHash != nil:
		return "", fmt.Errorf("cannot determine what to promote: %w", o.UnknownHash)
	case refused != nil:
		return "", fmt.Errorf("there is no rollout to promote: %w", refused)
	case !o.Underway():
		return "", errors.New("the operator has not requested the rollout of this spec yet: check that the operator runs, and that the Materialize is not paused")
	case o.Expired(now):
		return "", fmt.Errorf("the rollout of generation %d timed out and was cancelled: change the spec, or set spec.forceRollout to a new UUID", next)
	case o.Forced():
		return fmt.Sprintf("generation %d is promoted as soon as its pods are ready: spec.forcePromote is set already", next), nil
	}
	return "", nil
}

func printPromotion(w io.Writer, e environment, now time.Time) {
	m, next := e.Materialize, e.Next().Number
	inPlace := ""
	if active := e.Active(); active != nil {
		inPlace = fmt.Sprintf(" in place of generation %d", active.Number)
	}
	fmt.Fprintf(w, "Materialize %s/%s: generation %d becomes active%s.\n", m.Namespace, m.Name, next, inPlace)
	status := e.status(now)
	state := "environmentd has not reported whether it has caught up, and is promoted in any case"
	switch v1alpha2.LeaderStatus(status.Leader) {
	case v1alpha2.LeaderReadyToPromote:
		state = "environmentd has caught up, and waits for the promotion"
	case v1alpha2.LeaderInitializing:
		state = "environmentd has not caught up yet, and is promoted in any case"
	}
	pods := fmt.Sprintf("%d of %s ready", countReady(status.Pods), render.Count(len(status.Pods), "pod"))
	if len(status.Pods) == 0 {
		pods = "No pods yet"
	}
	render.Paragraph(w, pods+"; "+state+".")
	printChanges(w, render.Text, rollout.NewForecast(e.Observed, nil, now).Changes)
	if hold := rollout.Plan(e.Observed, now).Hold; hold != nil {
		fmt.Fprintf(w, "\nOn hold: %s.\n", hold.Message)
	}
	fmt.Fprintln(w, "\nA promotion cannot be undone.")
}

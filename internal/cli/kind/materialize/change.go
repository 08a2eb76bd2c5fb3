package materialize

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

func (*Kind) Promote(ctx context.Context, r connect.Resource) (kind.Change, error) {
	return changeRollout(ctx, r, planPromotion)
}

func (*Kind) Abort(ctx context.Context, r connect.Resource) (kind.Change, error) {
	return changeRollout(ctx, r, planAbort)
}

// changeRollout plans a change to a rollout, which is made if it is still about what was shown.
func changeRollout(ctx context.Context, r connect.Resource, plan func(environment, connect.Resource, time.Time) (kind.Change, error),
) (kind.Change, error) {
	e, err := observe(ctx, r.Cluster.Client, r)
	if err != nil {
		return kind.Change{}, err
	}
	if !e.Materialize.DeletionTimestamp.IsZero() {
		return kind.Change{}, fmt.Errorf("%s is being deleted", r)
	}
	change, err := plan(e, r, time.Now())
	if err != nil {
		return kind.Change{}, fmt.Errorf("%s: %w", r, err)
	}
	if change.Noop != "" {
		change.Noop = fmt.Sprintf("%s: %s", r, change.Noop)
	}
	change.Done = fmt.Sprintf("%s: %s", r, change.Done)
	return change, nil
}

// The operator writes its status between two attempts to change a Materialize.
const (
	maxAttempts   = 10
	retryInterval = 200 * time.Millisecond
)

// patchMaterialize changes a Materialize that is still as it was shown. The resourceVersion in the patch makes any later change a
// conflict.
func patchMaterialize(ctx context.Context, r connect.Resource, shown *v1alpha2.Materialize,
	change func(*v1alpha2.Materialize) error,
) error {
	backoff := wait.Backoff{Duration: retryInterval, Factor: 1, Steps: maxAttempts}
	return retry.RetryOnConflict(backoff, func() error {
		now := &v1alpha2.Materialize{}
		if err := r.Get(ctx, r.Cluster.Client, now); err != nil {
			return err
		}
		if err := checkUnchanged(shown, now); err != nil {
			return fmt.Errorf("nothing was changed, because %w; run the command again", err)
		}
		before := now.DeepCopy()
		if err := change(now); err != nil {
			return err
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return r.Cluster.Client.Patch(ctx, now, patch, client.FieldOwner(connect.FieldOwner))
	})
}

// checkUnchanged tells whether a Materialize is the one that was shown.
func checkUnchanged(shown, now *v1alpha2.Materialize) error {
	condition := meta.FindStatusCondition(now.Status.Conditions, v1alpha2.ConditionUpToDate)
	switch {
	case now.UID != shown.UID:
		return errors.New("it was deleted and created again meanwhile")
	case hash.Of(shown) != hash.Of(now):
		return errors.New("its spec was changed meanwhile")
	case condition != nil && condition.Reason == string(v1alpha2.ReasonPromoting):
		return errors.New("it is being promoted meanwhile")
	case now.Status.ActiveGeneration != shown.Status.ActiveGeneration:
		return errors.New("its rollout was completed meanwhile")
	}
	return nil
}

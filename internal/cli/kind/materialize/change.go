package materialize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

// edit is a change to a Materialize that is shown before it is made.
type edit struct {
	// noop is why there is nothing to change.
	noop string
	// show what it is about, and the question that follows.
	show     func(io.Writer)
	question string
	// precondition checks what is special about this change; nil if nothing is.
	precondition func(*v1alpha2.Materialize) error
	// prerequisite is what has to happen before that; nil if nothing has.
	prerequisite *prerequisite
	// change the Materialize as it is when the answer is there.
	change func(*v1alpha2.Materialize) error
	// message is printed when it is done.
	message string
}

// prerequisite is a change that the operator has to see before another one is made.
type prerequisite struct {
	change     func(*v1alpha2.Materialize) error
	isObserved func(*v1alpha2.Materialize) bool
	// timeoutMessage is the error if the operator does not see it.
	timeoutMessage string
}

// editRollout shows a change to a rollout, asks, and makes it, if it is still about what was shown.
func editRollout(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation,
	decide func(environment, time.Time) (edit, error),
) error {
	e, err := getEnvironment(ctx, c.Client, r.Key)
	if err != nil {
		return r.NotFoundOr(err)
	}
	if !e.Materialize.DeletionTimestamp.IsZero() {
		return fmt.Errorf("%s is being deleted", r)
	}
	edit, err := decide(e, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	if edit.noop != "" {
		fmt.Fprintf(streams.Out, "%s: %s\n", r, edit.noop)
		return nil
	}
	edit.show(streams.Out)
	if err := confirm.Ask(ctx, streams, edit.question); err != nil {
		return err
	}
	if err := applyEdit(ctx, c, e.Materialize, edit); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	fmt.Fprintf(streams.Out, "%s: %s\n", r, edit.message)
	return nil
}

// maxAttempts are how often a change is tried while the operator writes its status in between.
const maxAttempts = 10

const retryInterval = 200 * time.Millisecond

// applyEdit changes a Materialize that was shown, as long as it is the same.
func applyEdit(ctx context.Context, c *connect.Cluster, shown *v1alpha2.Materialize, edit edit) error {
	if edit.prerequisite != nil {
		if err := patchMaterialize(ctx, c, shown, edit.precondition, edit.prerequisite.change); err != nil {
			return err
		}
		if err := waitForOperator(ctx, c, shown, *edit.prerequisite); err != nil {
			return err
		}
	}
	return patchMaterialize(ctx, c, shown, edit.precondition, edit.change)
}

// operatorTimeout is how long the operator is given to see a change.
const operatorTimeout = 10 * time.Second

func waitForOperator(ctx context.Context, c *connect.Cluster, shown *v1alpha2.Materialize, first prerequisite) error {
	err := wait.PollUntilContextTimeout(ctx, retryInterval, operatorTimeout, true, func(ctx context.Context) (bool, error) {
		now, err := getMaterialize(ctx, c.Client, client.ObjectKeyFromObject(shown))
		return err == nil && first.isObserved(now), err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errors.New(first.timeoutMessage)
	}
	return err
}

// patchMaterialize changes a Materialize that is still as it was shown. The resourceVersion in the patch makes any later change a
// conflict.
func patchMaterialize(ctx context.Context, c *connect.Cluster, shown *v1alpha2.Materialize, still, change func(*v1alpha2.Materialize) error) error {
	backoff := wait.Backoff{Duration: retryInterval, Factor: 1, Steps: maxAttempts}
	return retry.RetryOnConflict(backoff, func() error {
		now, err := getMaterialize(ctx, c.Client, client.ObjectKeyFromObject(shown))
		if err != nil {
			return err
		}
		err = checkUnchanged(shown, now)
		if err == nil && still != nil {
			err = still(now)
		}
		if err != nil {
			return fmt.Errorf("nothing was changed, because %w; run the command again", err)
		}
		before := now.DeepCopy()
		if err := change(now); err != nil {
			return err
		}
		return c.Client.Patch(ctx, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(connect.FieldOwner))
	})
}

// checkUnchanged tells whether a Materialize is the one that was shown.
func checkUnchanged(shown, now *v1alpha2.Materialize) error {
	was, err := hash.Of(shown)
	if err != nil {
		return err
	}
	is, err := hash.Of(now)
	if err != nil {
		return err
	}
	condition := meta.FindStatusCondition(now.Status.Conditions, v1alpha2.ConditionUpToDate)
	switch {
	case now.UID != shown.UID:
		return errors.New("it was deleted and created again meanwhile")
	case was != is:
		return errors.New("its spec was changed meanwhile")
	case condition != nil && condition.Reason == string(v1alpha2.ReasonPromoting):
		return errors.New("it is being promoted meanwhile")
	case now.Status.ActiveGeneration != shown.Status.ActiveGeneration:
		return errors.New("its rollout was completed meanwhile")
	}
	return nil
}

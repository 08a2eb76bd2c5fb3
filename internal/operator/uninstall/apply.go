package uninstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/operator/foreign"
	"github.com/fairlead/fairlead/internal/operator/lease"
	"github.com/fairlead/fairlead/internal/revision/admission"
)

// FieldOwner is the name under which objects are released.
const FieldOwner = "fairlead/uninstall"

const leaseDuration = 12 * time.Second

// Options of Apply.
type Options struct {
	// Waiting is called with the operators that still hold a lease, whenever they change.
	Waiting func([]lease.Holder)
	// Confirmed is called with the plan when no operator acts any more.
	Confirmed func(Plan)
}

// Apply scales the operators down, waits until none of them leads, and releases what there is then. It holds the leases of all
// passages meanwhile, so that no operator acts. It can be called again when it was interrupted.
func Apply(ctx context.Context, config *rest.Config, c client.Client, first Plan, options Options) error {
	for _, d := range first.ScaleDown {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
		if err := c.Patch(ctx, metadataOf(d.Ref), patch, client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("scale %s to 0: %w", d.Ref, err)
		}
	}
	return whileLeading(ctx, config, first.Namespaces, options.Waiting, func(ctx context.Context) error {
		// An operator may have written since the plan was shown.
		o, err := Observe(ctx, config, c)
		if err != nil {
			return err
		}
		plan := Decide(o)
		if err := release(ctx, config, c, plan); err != nil {
			return err
		}
		if options.Confirmed != nil {
			options.Confirmed(plan)
		}
		return nil
	})
}

// whileLeading runs what must not run beside an operator, and deletes the leases afterwards, with those that operators keep in
// their namespaces.
func whileLeading(ctx context.Context, config *rest.Config, namespaces []string, waiting func([]lease.Holder), run func(context.Context) error) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	client, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return err
	}
	var seen []lease.Holder
	identity := "uninstall_" + host + "_" + string(uuid.NewUUID())
	lock := lease.New(client, lease.Options{
		Identity: identity, Passages: operator.Names(), FormerNamespace: lease.Namespace, Now: time.Now,
		Observe: func(holders []lease.Holder) {
			others := slices.DeleteFunc(slices.Clone(holders), func(h lease.Holder) bool { return h.Identity == "" || h.Identity == identity })
			if len(others) > 0 && !slices.Equal(others, seen) && waiting != nil {
				waiting(others)
			}
			seen = others
		},
	})
	electing, stop := context.WithCancel(ctx)
	defer stop()
	var runErr error
	begun, ran := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: leaseDuration * 2 / 3, RetryPeriod: leaseDuration / 8, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer close(ran)
				close(begun)
				if runErr = leading.Err(); runErr == nil {
					runErr = run(leading)
				}
				stop()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(electing)
	select {
	case <-begun:
		<-ran
	default:
		return waitError(context.Cause(ctx), seen)
	}
	if errors.Is(runErr, context.Canceled) && ctx.Err() == nil {
		return fmt.Errorf("lost the leases %s, and not everything was released: run the command again", lock.Describe())
	}
	if runErr != nil {
		return runErr
	}
	ctx = context.WithoutCancel(ctx)
	errs := []error{lock.Delete(ctx)}
	for _, namespace := range namespaces {
		errs = append(errs, lease.DeleteFormer(ctx, client, namespace))
	}
	return errors.Join(errs...)
}

// waitError says which operator still runs.
func waitError(err error, holders []lease.Holder) error {
	for _, h := range holders {
		return fmt.Errorf("operator %s still holds the lease %s, and nothing was released: stop the operator, and run the command again: %w", h.Identity, h.Lease, err)
	}
	return err
}

// release carries a plan out. No operator acts.
func release(ctx context.Context, config *rest.Config, c client.Client, plan Plan) error {
	for _, r := range plan.Owners {
		err := change(ctx, c, r, func(object *metav1.PartialObjectMetadata) {
			object.OwnerReferences = slices.DeleteFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool { return slices.Contains(r.Owners, owner.UID) })
		})
		if err != nil {
			return fmt.Errorf("remove the owner of %s: %w", r.Ref, err)
		}
	}
	for _, r := range plan.Finalizers {
		err := change(ctx, c, r, func(object *metav1.PartialObjectMetadata) {
			object.Finalizers = slices.DeleteFunc(object.Finalizers, func(name string) bool { return name == r.Finalizer })
		})
		if err != nil {
			return fmt.Errorf("remove the finalizer of %s: %w", r.Ref, err)
		}
	}
	var converted []string
	for _, crd := range plan.Conversions {
		converted = append(converted, crd.Name)
	}
	if err := crds.RemoveConversion(ctx, config, converted...); err != nil {
		return err
	}
	if err := admission.Uninstall(ctx, c); err != nil {
		return err
	}
	return removeHeld(ctx, config)
}

// A CRD is served without its webhook within seconds, by every replica of the API server.
const (
	heldRetryInterval = 500 * time.Millisecond
	heldRetryTimeout  = time.Minute
)

// removeHeld removes what says that a passage holds: no operator would. As long as the API server has not seen that a CRD has no
// webhook any more, it calls that of the operator, which has ended.
func removeHeld(ctx context.Context, config *rest.Config) error {
	reporter, err := foreign.NewReporter(ctx, config, logr.Discard())
	if err != nil {
		return err
	}
	var errs []error
	for _, system := range foreign.Systems() {
		var failed error
		err := wait.PollUntilContextTimeout(ctx, heldRetryInterval, heldRetryTimeout, true, func(ctx context.Context) (bool, error) {
			failed = reporter.Released(ctx, system)
			return !isTransient(failed), nil
		})
		errs = append(errs, cmp.Or(failed, err))
	}
	return errors.Join(errs...)
}

// isTransient tells whether the API server, or a webhook that it called, has failed in one of the requests, or an object has changed.
func isTransient(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return kube.IsUnavailable(err) || apierrors.IsConflict(err)
	}
	return slices.ContainsFunc(joined.Unwrap(), isTransient)
}

// change patches the metadata of an object, unless it is gone or another one has its name.
func change(ctx context.Context, c client.Client, r Release, edit func(*metav1.PartialObjectMetadata)) error {
	return retry.RetryOnConflict(kube.ConflictBackoff, func() error {
		object := metadataOf(r.Ref)
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return client.IgnoreNotFound(err)
		}
		if object.UID != r.UID {
			return nil
		}
		before := object.DeepCopy()
		edit(object)
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return client.IgnoreNotFound(c.Patch(ctx, object, patch, client.FieldOwner(FieldOwner)))
	})
}

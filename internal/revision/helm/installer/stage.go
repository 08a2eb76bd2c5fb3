package installer

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Tools are what the controllers of the passage work with.
type Tools struct {
	// Client reads its own writes.
	Client client.Client
	// Cache is read in event handlers, which must not wait for our own writes.
	Cache    client.Reader
	Objects  *Objects
	Releases *ReleaseClient
	Charts   *Charts
	Usage    *usage.Tracker
	Recorder events.EventRecorder
	Now      func() time.Time
}

// ObserveRelease compares a release with the wanted spec, made from a chart of its version. Of a release that is not wanted
// or whose chart cannot be loaded or has changed, only the state is read.
func (t Tools) ObserveRelease(ctx context.Context, spec release.Spec, chart string, wanted bool, records ChartRecords) (Release, error) {
	of := v1.ChartDigest{Name: chart, Version: spec.ChartVersion}
	var unavailable error
	if wanted {
		if spec.Chart, unavailable = t.loadChart(ctx, of, records); unavailable == nil {
			observed, err := t.Releases.Observe(ctx, spec)
			observed.Chart = v1.ChartDigest{Name: of.Name, Version: of.Version, Digest: spec.Chart.Content}
			return observed, err
		}
	}
	state, err := t.Releases.State(ctx, spec.Namespace, spec.Name)
	return Release{Name: spec.Name, Namespace: spec.Namespace, Chart: of, State: state, Err: unavailable}, err
}

// loadChart refuses a chart that is not the recorded one.
func (t Tools) loadChart(ctx context.Context, of v1.ChartDigest, records ChartRecords) (*charts.Chart, error) {
	loaded, err := t.Charts.Load(ctx, of.Name, of.Version)
	if err != nil {
		return nil, err
	}
	of.Digest = loaded.Content
	if err := records.Check(of, t.Charts.String()); err != nil {
		t.Charts.Forget(of.Name, of.Version)
		return nil, err
	}
	return loaded, nil
}

// Observed is what a stage sees of an owner of releases.
type Observed interface {
	Owner() client.Object
	// ReleaseOf is the release that a step was planned for.
	ReleaseOf(passage.Step) Release
	// ReadError is set if a part of the state could not be read.
	ReadError() error
	UsageKnown() bool
}

// Stage reconciles owners of releases: IstioRevisions or IstioRevisionTags.
type Stage[O Observed] struct {
	Tools
	// Observe reads an owner and its releases. With fresh, state that a cache may lag behind is read from the API server.
	Observe func(ctx context.Context, name string, fresh bool) (O, error)
	Plan    func(O) passage.Plan
	// Record writes what must be known of a release before any of its objects is written; it may be nil.
	Record func(context.Context, O, Release) error
	// RecordEvent reports a step that was applied.
	RecordEvent func(O, passage.Step)
	Report      func(ctx context.Context, o O, plan passage.Plan, failure error) error
}

// Reconcile observes, plans, applies and reports one owner.
func (s Stage[O]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	observed, err := s.observe(ctx, request.Name, false)
	if err != nil {
		// The users of a name are counted even if no owner has that name.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	plan := s.plan(ctx, observed)
	decision := passage.Next(plan, passage.Batching{}, s.Now())
	applyErr := s.apply(ctx, observed, decision.Start)
	if apierrors.IsConflict(applyErr) {
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	}
	if len(decision.Start) > 0 && applyErr == nil {
		if observed, err = s.observe(ctx, request.Name, true); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		plan = s.plan(ctx, observed)
	}
	if owner := observed.Owner(); !owner.GetDeletionTimestamp().IsZero() && applyErr == nil && len(plan.Steps) == 0 {
		err := client.IgnoreNotFound(s.patchFinalizers(ctx, owner, controllerutil.RemoveFinalizer))
		if err != nil || len(owner.GetFinalizers()) == 0 {
			return ctrl.Result{}, err
		}
		plan = s.plan(ctx, observed)
	}
	if err := s.report(ctx, observed, plan, applyErr); err != nil {
		return StatusError(applyErr, err)
	}
	result, err := Result(plan, errors.Join(applyErr, observed.ReadError()), s.Charts.RetryInterval())
	if err == nil && !observed.UsageKnown() {
		result = requeueUnknownUsage(result)
	}
	return result, err
}

func (s Stage[O]) observe(ctx context.Context, name string, fresh bool) (O, error) {
	defer kube.Span(&ctx, kube.StageObserve)()
	return s.Observe(ctx, name, fresh)
}

func (s Stage[O]) plan(ctx context.Context, o O) passage.Plan {
	defer kube.Span(&ctx, kube.StagePlan)()
	return s.Plan(o)
}

func (s Stage[O]) report(ctx context.Context, o O, plan passage.Plan, failure error) error {
	defer kube.Span(&ctx, kube.StageReport)()
	return s.Report(ctx, o, plan, failure)
}

// apply applies steps of a plan, in order.
func (s Stage[O]) apply(ctx context.Context, o O, steps []passage.Step) error {
	defer kube.Span(&ctx, kube.StageApply)()
	var failures []error
	for _, step := range steps {
		if err := s.applyStep(ctx, o, step); err != nil {
			failures = append(failures, fmt.Errorf("%s %s: %w", step.Action, step.Object, err))
			if step.Action == ActionRestore {
				continue // other objects can be restored all the same
			}
			break
		}
		kube.LogStep(ctx, "revision", step)
		s.RecordEvent(o, step)
	}
	return errors.Join(failures...)
}

func (s Stage[O]) applyStep(ctx context.Context, o O, step passage.Step) error {
	if step.Action == ActionUninstall {
		return s.Releases.Uninstall(ctx, step.Object.Namespace, step.Object.Name)
	}
	if err := s.patchFinalizers(ctx, o.Owner(), controllerutil.AddFinalizer); err != nil {
		return err
	}
	of := o.ReleaseOf(step)
	if s.Record != nil {
		if err := s.Record(ctx, o, of); err != nil {
			return err
		}
	}
	return s.Releases.Apply(ctx, of, step)
}

var eventReasons = map[passage.Action]string{
	ActionInstall:   "Installed",
	ActionUpgrade:   "Upgraded",
	ActionRestore:   "Restored",
	ActionUninstall: "Uninstalled",
}

// RecordStep records an event for a step that was applied to a release.
func (t Tools) RecordStep(owner client.Object, step passage.Step) {
	t.Recorder.Eventf(owner, related(step.Object), corev1.EventTypeNormal, eventReasons[step.Action], string(step.Action),
		"%s %s: %s", step.Action, step.Object, step.Reason.Message)
}

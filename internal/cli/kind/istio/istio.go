// Package istio is what commands know about an Istio and its workloads.
package istio

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/istio"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// Kind is Istio.
type Kind struct {
	flags *pflag.FlagSet
	// version to plan for, and charts as the operator has them.
	version string
	charts  charts.Options
}

func (*Kind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{v1.GroupVersion.WithKind(v1.IstioKind).GroupKind()}
}

// observed is an Istio and its workloads, and the plans for both.
type observed struct {
	istio     *v1.Istio
	plan      passage.Plan
	workloads *workloads
	note      string
}

func (k *Kind) observe(ctx context.Context, reader client.Reader, name string) (observed, error) {
	workloads, users, err := inventory.List(ctx, reader)
	if err != nil {
		return observed{}, err
	}
	return k.observeFrom(ctx, reader, name, users, workloads.Snapshot())
}

func (k *Kind) observeFrom(ctx context.Context, reader client.Reader, name string, users istio.UsageReader,
	snapshot inventory.Snapshot,
) (observed, error) {
	known := k.versions(ctx)
	input, err := istio.Observe(ctx, reader, name, known, users)
	if err != nil {
		return observed{}, err
	}
	if k.hasVersion() {
		input.Istio.Spec.Version = k.version
	}
	o := observed{istio: input.Istio, plan: istio.Plan(input, time.Now())}
	moving, err := workload.Observe(ctx, reader, name, snapshot)
	if err != nil {
		return observed{}, err
	}
	o.workloads = planWorkloads(moving.WithReportedInjection(), o.plan, time.Now())
	if known.Err != nil && k.hasVersion() && o.plan.Target != "" {
		o.note = fmt.Sprintf("The charts of %s were not checked: give the --chart-dir or --chart-repository of the operator.", k.version)
	}
	return o, nil
}

// versions that the operator can install, which is not known without its charts.
func (k *Kind) versions(ctx context.Context) istio.Charts {
	if !k.hasCharts() {
		return istio.Charts{UseReportedError: !k.hasVersion(), Err: errors.New(
			"the versions of the operator's charts are unknown; give the --chart-dir or --chart-repository of the operator")}
	}
	source, err := charts.New(k.charts)
	if err != nil {
		return istio.Charts{Err: err}
	}
	known, err := source.Versions(ctx)
	return istio.Charts{Versions: known, Err: err}
}

func (*Kind) Hints() map[string]string {
	return map[string]string{
		"plan -f": "an Istio is planned with --version",
		"abort":   "to go back, set spec.version back; to stop, `fairlead pause istio NAME`",
		"promote": "workloads follow a control plane by themselves once it is ready",
	}
}

func (k *Kind) AddFlags(command string, flags *pflag.FlagSet) {
	if command == "plan" {
		k.flags = flags
		flags.StringVar(&k.version, "version", "", "plan as if spec.version of the Istio had this value")
		k.charts.AddFlags(flags)
	}
}

func (k *Kind) hasVersion() bool { return k.flags != nil && k.flags.Changed("version") }

func (k *Kind) hasCharts() bool { return k.charts.Dir != "" || k.charts.Repository != "" }

// versionPattern is what the API takes for spec.version.
var versionPattern = regexp.MustCompile(`^v[0-9]+\.[0-9]+(\.[0-9]+(-[0-9a-z.-]+)?|-latest)$`)

func (k *Kind) ValidateFlags() error {
	if k.version != "" && !versionPattern.MatchString(k.version) {
		return console.UsageErrorf("--version %s is neither an exact version such as v1.24.0 nor one such as v1.24-latest", k.version)
	}
	if k.hasCharts() {
		if err := k.charts.Validate(); err != nil {
			return console.UsageErrorf("%v", err)
		}
	}
	return nil
}

func (k *Kind) Status(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error) {
	workloads, users, err := inventory.List(ctx, reader)
	if err != nil {
		return nil, err
	}
	o, err := k.observeFrom(ctx, reader, r.Key.Name, users, workloads.Snapshot())
	if err != nil {
		return nil, orphaned(ctx, reader, r, users, err)
	}
	return newStatus(o, time.Now()), nil
}

// Watch keeps the inventory that the operator keeps: an Istio may have thousands of workloads, too many to list again and
// again.
func (k *Kind) Watch(ctx context.Context, r connect.Resource) (kind.Watch, error) {
	kept := inventory.CacheOptions()
	maps.Copy(kept, usage.CacheOptions())
	w, err := kind.NewWatchCache(r.Cluster, cache.Options{ByObject: kept})
	if err != nil {
		return kind.Watch{}, err
	}
	workloads := inventory.New(func(inventory.Change) { w.Notify() })
	workloadsSynced, err := workloads.Watch(ctx, w, w)
	if err != nil {
		return kind.Watch{}, err
	}
	users, err := usage.NewTracker(ctx, w, w, w)
	if err != nil {
		return kind.Watch{}, err
	}
	if err := w.WatchKinds(ctx, &v1.Istio{}, &v1.IstioRevision{}, &v1.IstioRevisionTag{}); err != nil {
		return kind.Watch{}, err
	}
	// With half of the workloads, all of them may seem done.
	if err := w.Run(ctx, workloadsSynced, users.HasSynced); err != nil {
		return kind.Watch{}, err
	}
	return w.Watch(func(ctx context.Context) (render.Status, error) {
		o, err := k.observeFrom(ctx, w, r.Key.Name, users, workloads.Snapshot())
		if err != nil {
			return nil, orphaned(ctx, w, r, users, err)
		}
		return newStatus(o, time.Now()), nil
	}), nil
}

func (*Kind) Retry(ctx context.Context, r connect.Resource) (kind.Change, error) {
	var subject v1.Istio
	if err := r.Get(ctx, r.Cluster.Client, &subject); err != nil {
		return kind.Change{}, err
	}
	status := subject.Status.WorkloadMigration
	if status == nil || status.State != v1.WorkloadMigrationStateFailed && status.FailedWorkloads == 0 {
		return kind.Change{Noop: fmt.Sprintf("%s has no workloads that failed", r)}, nil
	}
	at := time.Now().UTC().Format(time.RFC3339Nano)
	return kind.Change{
		Apply: func(ctx context.Context) error { return r.Annotate(ctx, fairlead.AnnotationRetry, at) },
		Done:  fmt.Sprintf("%s: %s tried again", r, retriedText(int(status.FailedWorkloads))),
	}, nil
}

func retriedText(n int) string {
	switch n {
	case 0:
		return "what failed is"
	case 1:
		return "1 workload is"
	}
	return fmt.Sprintf("%d workloads are", n)
}

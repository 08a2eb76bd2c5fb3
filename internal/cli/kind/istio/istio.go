// Package istio is what commands know about an Istio and its workloads.
package istio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/istio"
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
	o.workloads = planWorkloads(moving, o.plan, time.Now())
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

func (k *Kind) AddPlanFlags(flags *pflag.FlagSet) {
	k.flags = flags
	flags.StringVar(&k.version, "version", "", "plan as if spec.version of the Istio had this value")
	k.charts.AddFlags(flags)
}

func (k *Kind) hasVersion() bool { return k.flags != nil && k.flags.Changed("version") }

func (k *Kind) hasCharts() bool { return k.charts.Dir != "" || k.charts.Repository != "" }

// versionPattern is what the API takes for spec.version.
var versionPattern = regexp.MustCompile(`^v[0-9]+\.[0-9]+(\.[0-9]+(-[0-9a-z.-]+)?|-latest)$`)

func (k *Kind) ValidatePlanFlags() error {
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

func (k *Kind) Status(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Status, error) {
	o, err := k.observe(ctx, c.Client, r.Key.Name)
	if err != nil {
		return nil, err
	}
	return newStatus(o, time.Now()), nil
}

func (*Kind) Retry(ctx context.Context, c *connect.Cluster, r connect.Resource, out io.Writer) error {
	var subject v1.Istio
	if err := c.Client.Get(ctx, r.Key, &subject); err != nil {
		return r.NotFoundOr(fmt.Errorf("%s: %w", r, err))
	}
	status := subject.Status.WorkloadMigration
	if status == nil || status.State != v1.WorkloadMigrationStateFailed && status.FailedWorkloads == 0 {
		fmt.Fprintf(out, "%s has no workloads that failed\n", r)
		return nil
	}
	if err := c.Annotate(ctx, r, fairlead.AnnotationRetry, time.Now().UTC().Format(time.RFC3339Nano)); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	fmt.Fprintf(out, "%s: %s tried again\n", r, retriedText(int(status.FailedWorkloads)))
	return nil
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

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/adoption/work"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
)

func newRetryCommand(c *connect.Flags, streams Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "retry TYPE NAME",
		Short:   "Let the operator try again what has failed",
		Long:    "Let the operator try again what has failed. What has not failed is left alone.",
		Example: "  fairlead retry istio default\n  fairlead retry mesh default",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return retry(cmd.Context(), c, streams, args)
		},
	}
}

func retry(ctx context.Context, c *connect.Flags, streams Streams, args []string) error {
	cluster, resource, err := resolveArgs(c, args)
	if err != nil {
		return err
	}
	if resource.Kind() == meshes {
		return retryMesh(ctx, cluster, streams, resource)
	}
	if kind := resource.Mapping.GroupVersionKind.Kind; kind != v1.IstioKind {
		return console.UsageErrorf("there is nothing to retry for %s: only the workloads of an Istio and the consumers of a Mesh fail for good; a Materialize is rolled out again "+
			"with a new UUID in spec.forceRollout, and what a policy could not apply is tried again every %s", kind, work.RecheckInterval)
	}
	var istio v1.Istio
	if err := cluster.Client.Get(ctx, resource.Key, &istio); apierrors.IsNotFound(err) {
		return resource.NotFound()
	} else if err != nil {
		return fmt.Errorf("%s: %w", resource, err)
	}
	if status := istio.Status.WorkloadMigration; status == nil || status.State != v1.WorkloadMigrationStateFailed && status.FailedWorkloads == 0 {
		fmt.Fprintf(streams.Out, "%s has no workloads that failed\n", resource)
		return nil
	}
	if err := cluster.Annotate(ctx, resource, fairlead.AnnotationRetry, time.Now().UTC().Format(time.RFC3339Nano)); err != nil {
		return fmt.Errorf("%s: %w", resource, err)
	}
	fmt.Fprintf(streams.Out, "%s: %s tried again\n", resource, retriedText(int(istio.Status.WorkloadMigration.FailedWorkloads)))
	return nil
}

func retriedText(n int) string {
	if n == 0 {
		return "what failed is"
	}
	if n == 1 {
		return "1 workload is"
	}
	return fmt.Sprintf("%d workloads are", n)
}

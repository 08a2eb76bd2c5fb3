package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/internal/cli/connect"
)

func newPauseCommand(c *connect.Flags, streams Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "pause TYPE NAME",
		Short:   "Pause a resource: the operator starts nothing more for it",
		Long:    "Pause a resource: the operator starts no further steps for it. Steps that have started are completed.",
		Example: "  fairlead pause istio default\n  fairlead pause mzs production -n shop\n  fairlead pause mesh default",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return setPaused(cmd.Context(), c, streams, args, true)
		},
	}
}

func newResumeCommand(c *connect.Flags, streams Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "resume TYPE NAME",
		Short:   "Resume a paused resource",
		Example: "  fairlead resume istio default\n  fairlead resume mzs production -n shop\n  fairlead resume mesh default",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return setPaused(cmd.Context(), c, streams, args, false)
		},
	}
}

func setPaused(ctx context.Context, c *connect.Flags, streams Streams, args []string, pause bool) error {
	cluster, resource, _, err := resolve(c, newKinds(), args)
	if err != nil {
		return err
	}
	result := map[bool]string{true: "paused", false: "resumed"}[pause]
	changed, err := annotatePaused(ctx, cluster, resource, pause)
	switch {
	case apierrors.IsNotFound(err):
		return resource.NotFound()
	case err != nil:
		return fmt.Errorf("%s: %w", resource, err)
	case !changed && pause:
		result = "is paused already"
	case !changed:
		result = "is not paused"
	}
	fmt.Fprintf(streams.Out, "%s %s\n", resource, result)
	return nil
}

func annotatePaused(ctx context.Context, c *connect.Cluster, r connect.Resource, pause bool) (changed bool, err error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(r.Mapping.GroupVersionKind)
	if err := c.Client.Get(ctx, r.Key, object); err != nil {
		return false, err
	}
	value, found := object.Annotations[fairlead.AnnotationPaused]
	if pause && value == "true" || !pause && !found {
		return false, nil
	}
	// In a merge patch, null removes.
	var wanted any
	if pause {
		wanted = "true"
	}
	return true, c.Annotate(ctx, r, fairlead.AnnotationPaused, wanted)
}

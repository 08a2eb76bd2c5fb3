package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

func newPauseCommand(c *connect.Flags, streams Streams) *cobra.Command {
	return newChangeCommand(&cobra.Command{
		Use:     "pause TYPE NAME",
		Short:   "Pause a resource: the operator starts nothing more for it",
		Long:    "Pause a resource: the operator starts no further steps for it. Steps that have started are completed.",
		Example: "  fairlead pause istio default\n  fairlead pause mzs production -n shop\n  fairlead pause mesh default",
	}, c, streams, nil, pause)
}

func newResumeCommand(c *connect.Flags, streams Streams) *cobra.Command {
	return newChangeCommand(&cobra.Command{
		Use:     "resume TYPE NAME",
		Short:   "Resume a paused resource",
		Example: "  fairlead resume istio default\n  fairlead resume mzs production -n shop\n  fairlead resume mesh default",
	}, c, streams, nil, resume)
}

func pause(_ kind.Kind, ctx context.Context, r connect.Resource) (kind.Change, error) {
	return setPaused(ctx, r, "true", "paused", "is paused already")
}

func resume(_ kind.Kind, ctx context.Context, r connect.Resource) (kind.Change, error) {
	return setPaused(ctx, r, nil, "resumed", "is not paused")
}

// setPaused gives the annotation a value, and removes it if that is nil.
func setPaused(ctx context.Context, r connect.Resource, wanted any, done, noop string) (kind.Change, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(r.Mapping.GroupVersionKind)
	if err := r.Get(ctx, r.Cluster.Client, object); err != nil {
		return kind.Change{}, err
	}
	if value, found := object.Annotations[fairlead.AnnotationPaused]; wanted == value || wanted == nil && !found {
		return kind.Change{Noop: fmt.Sprintf("%s %s", r, noop)}, nil
	}
	return kind.Change{
		Apply: func(ctx context.Context) error { return r.Annotate(ctx, fairlead.AnnotationPaused, wanted) },
		Done:  fmt.Sprintf("%s %s", r, done),
	}, nil
}

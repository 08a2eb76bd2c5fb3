package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
)

// fieldOwner is who writes, in the eyes of the API server, when a person does.
const fieldOwner = "fairlead/cli"

func newPauseCommand(c *connection, streams Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "pause TYPE NAME",
		Short:   "Let the operator start nothing more for a resource",
		Long:    "Let the operator start nothing more for a resource. What has been started is seen through.",
		Example: "  fairlead pause istio default\n  fairlead pause mzs production -n shop\n  fairlead pause mesh default",
		Args:    requireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return setPaused(cmd.Context(), c, streams, args, true)
		},
	}
}

func newResumeCommand(c *connection, streams Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "resume TYPE NAME",
		Short:   "Let the operator go on with a resource that was paused",
		Example: "  fairlead resume istio default\n  fairlead resume mzs production -n shop\n  fairlead resume mesh default",
		Args:    requireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return setPaused(cmd.Context(), c, streams, args, false)
		},
	}
}

func setPaused(ctx context.Context, c *connection, streams Streams, args []string, pause bool) error {
	cluster, resource, err := c.resolveArgs(args)
	if err != nil {
		return err
	}
	result := map[bool]string{true: "paused", false: "resumed"}[pause]
	changed, err := cluster.annotatePaused(ctx, resource, pause)
	switch {
	case apierrors.IsNotFound(err):
		return resource.notFound()
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

func (c *cluster) annotatePaused(ctx context.Context, r resource, pause bool) (changed bool, err error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(r.mapping.GroupVersionKind)
	if err := c.client.Get(ctx, r.key, object); err != nil {
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
	return true, c.annotate(ctx, r, fairlead.AnnotationPaused, wanted)
}

func (c *cluster) annotate(ctx context.Context, r resource, key string, value any) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(r.mapping.GroupVersionKind)
	object.SetNamespace(r.key.Namespace)
	object.SetName(r.key.Name)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{key: value}},
	})
	if err != nil {
		return err
	}
	return c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldOwner))
}

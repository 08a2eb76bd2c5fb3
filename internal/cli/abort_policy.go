package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// abortPolicy asks the operator to let go of all that a policy has taken over, and to put back what that was before.
func (c *cluster) abortPolicy(cmd *cobra.Command, streams Streams, r resource, sure *confirmation) error {
	ctx := cmd.Context()
	object := newPolicy(r.key)
	if err := c.client.Get(ctx, r.key, object); apierrors.IsNotFound(err) {
		return r.missing()
	} else if err != nil {
		return fmt.Errorf("get %s: %w", r, err)
	}
	if object.GetAnnotations()[model.AnnotationAborted] == "true" {
		fmt.Fprintf(streams.Out, "%s was aborted already\n", r)
		return nil
	}
	toll, err := forecast.AbortImpactOf(ctx, c.client, policy.Of(object))
	if err != nil {
		return err
	}
	printToll(streams.Out, r, toll)
	if agreed, err := sure.given(ctx, streams, "Put it back?"); err != nil {
		return err
	} else if !agreed {
		fmt.Fprintln(streams.Out, "nothing was changed")
		return exitError{code: exitFailed}
	}
	if err := c.annotate(ctx, r, model.AnnotationAborted, "true"); err != nil {
		return fmt.Errorf("abort %s: %w", r, err)
	}
	fmt.Fprintf(streams.Out, "%s is put back\nTo see how far it is: fairlead watch %s --wait\n", r, typedPolicy(r.key))
	return nil
}

// typedPolicy is a policy as it is typed after a command.
func typedPolicy(key client.ObjectKey) string {
	if key.Namespace == "" {
		return "cpp " + key.Name
	}
	return "pp " + key.Name + " -n " + key.Namespace
}

// printToll shows what aborting a policy does.
func printToll(w io.Writer, r resource, toll forecast.AbortImpact) {
	said := []string{fmt.Sprintf("%s lets go of %s in %s.", r, count(toll.Objects, "object"), count(toll.Clusters, "cluster"))}
	switch {
	case toll.Changed > 0:
		said = append(said, fmt.Sprintf("%d of them changed by being taken over; that is put back, which may restart pods.", toll.Changed))
	case toll.Objects > 0:
		said = append(said, "None of them changed when they were taken over: all go on as they are.")
	}
	said = append(said, "What Fairlead has made itself stays. The policy takes nothing any more, until annotation "+model.AnnotationAborted+" is removed.")
	fmt.Fprintln(w, strings.Join(wrap(strings.Join(said, " "), columns), "\n"))
}

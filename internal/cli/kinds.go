package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/kind/istio"
	"github.com/fairlead/fairlead/internal/cli/kind/materialize"
	"github.com/fairlead/fairlead/internal/cli/kind/mesh"
	"github.com/fairlead/fairlead/internal/cli/kind/policy"
	"github.com/fairlead/fairlead/internal/cli/kind/revision"
)

// newKinds are all kinds, with flags of their own.
func newKinds() kind.Registry {
	return kind.Registry{&istio.Kind{}, &revision.Kind{}, &revision.TagKind{}, &materialize.Kind{}, &policy.Kind{}, &mesh.Kind{}}
}

// resolve connects, and finds the resource and its kind.
func resolve(c *connect.Flags, kinds kind.Registry, args []string) (connect.Resource, kind.Kind, error) {
	r, err := c.Resolve(args)
	if err != nil {
		return r, nil, suggestType(err, kinds)
	}
	k, err := kinds.Find(r)
	return r, k, err
}

// newChangeCommand completes a command that has a kind change a resource. Without a confirmation, it does not ask.
func newChangeCommand[T any](cmd *cobra.Command, c *connect.Flags, streams Streams, confirm *console.Confirmation,
	decide func(T, context.Context, connect.Resource) (kind.Change, error),
) *cobra.Command {
	kinds := newKinds()
	kinds.AddFlags(cmd)
	if confirm != nil {
		confirm.AddFlag(cmd)
	}
	cmd.Args = connect.RequireTypeAndName
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := kinds.ValidateFlags(); err != nil {
			return err
		}
		if err := confirm.RequireTerminal(cmd, streams.In); err != nil {
			return err
		}
		r, k, err := resolve(c, kinds, args)
		if err != nil {
			return err
		}
		able, ok := k.(T)
		if !ok {
			hint := cmp.Or(kind.Hint(k, cmd.Name()), fmt.Sprintf("`fairlead %s` supports only %s", cmd.Name(), kind.Names[T](kinds)))
			return console.UsageErrorf("there is nothing to %s for %s: %s", cmd.Name(), r.Kind().Kind, hint)
		}
		change, err := decide(able, cmd.Context(), r)
		if err != nil {
			return err
		}
		return change.Make(cmd.Context(), r, streams, confirm)
	}
	return cmd
}

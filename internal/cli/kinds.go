package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/kind/istio"
	"github.com/fairlead/fairlead/internal/cli/kind/materialize"
	"github.com/fairlead/fairlead/internal/cli/kind/mesh"
	"github.com/fairlead/fairlead/internal/cli/kind/policy"
	"github.com/fairlead/fairlead/internal/cli/kind/revision"
	"github.com/fairlead/fairlead/internal/cli/kind/tag"
)

// newKinds are all kinds, with flags of their own.
func newKinds() kind.Registry {
	return kind.Registry{&istio.Kind{}, &revision.Kind{}, &tag.Kind{}, &materialize.Kind{}, &policy.Kind{}, &mesh.Kind{}}
}

// resolve connects, and finds the resource and its kind.
func resolve(c *connect.Flags, kinds kind.Registry, args []string) (*connect.Cluster, connect.Resource, kind.Kind, error) {
	cluster, err := c.Connect()
	if err != nil {
		return nil, connect.Resource{}, nil, err
	}
	r, err := cluster.Resolve(args)
	if err != nil {
		return nil, connect.Resource{}, nil, err
	}
	k, err := kinds.Find(r)
	return cluster, r, k, err
}

// resolveAs connects, and finds a resource whose kind implements T.
func resolveAs[T any](cmd *cobra.Command, c *connect.Flags, kinds kind.Registry, args []string) (*connect.Cluster, connect.Resource, T, error) {
	cluster, r, k, err := resolve(c, kinds, args)
	able, ok := k.(T)
	if err == nil && !ok {
		err = unsupported[T](cmd, kinds, r)
	}
	return cluster, r, able, err
}

// newConfirmedCommand completes a command that shows what a kind is about to do to a resource, asks, and does it.
func newConfirmedCommand[T any](cmd *cobra.Command, c *connect.Flags, streams Streams,
	act func(T, context.Context, *connect.Cluster, connect.Resource, Streams, *console.Confirmation) error,
) *cobra.Command {
	var confirm console.Confirmation
	confirm.AddFlag(cmd)
	kinds := newKinds()
	cmd.Args = connect.RequireTypeAndName
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := confirm.RequireTerminal(cmd, streams.In); err != nil {
			return err
		}
		cluster, r, able, err := resolveAs[T](cmd, c, kinds, args)
		if err != nil {
			return err
		}
		return act(able, cmd.Context(), cluster, r, streams, &confirm)
	}
	return cmd
}

// unsupported refuses a command for a kind that does not implement T.
func unsupported[T any](cmd *cobra.Command, kinds kind.Registry, r connect.Resource) error {
	return console.UsageErrorf("there is nothing to %s for %s: `fairlead %s` supports only %s", cmd.Name(), r.Kind().Kind, cmd.Name(), kind.Names[T](kinds))
}

package adoption

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
)

// NewJoinCommand makes a cluster a member of a hub.
func NewJoinCommand(c *connect.Flags, streams console.Streams) *cobra.Command {
	var access memberAccess
	cmd := &cobra.Command{
		Use:   "join NAME --member-kubeconfig FILE",
		Short: "Make a cluster a member of the hub",
		Long: `Make a cluster a member of the hub, under a name.

In the cluster, the command creates a ServiceAccount for the hub and the ClusterRole ` + model.MemberRole + `, which covers the common kinds.
To let the hub manage other kinds, label a ClusterRole of your own with ` + model.LabelMemberRole + `=true.
Run the command again to renew the token.`,
		Example: "  fairlead join west --member-kubeconfig west.kubeconfig",
		Args:    console.RequireName,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := access.config()
			if err != nil {
				return err
			}
			hub, err := c.Connect()
			if err != nil {
				return err
			}
			id, err := model.HubID(cmd.Context(), hub.Client)
			if err != nil {
				return err
			}
			if err := member.Join(cmd.Context(), hub.Client, id, args[0], config); err != nil {
				return fmt.Errorf("join %s: %w", args[0], err)
			}
			fmt.Fprintf(streams.Out, "cluster.cluster.karmada.io/%s joined\n", args[0])
			return nil
		},
	}
	access.addFlags(cmd)
	_ = cmd.MarkFlagRequired("member-kubeconfig")
	return cmd
}

// memberAccess is how an administrator reaches a member.
type memberAccess struct{ kubeconfig, context string }

func (a *memberAccess) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.kubeconfig, "member-kubeconfig", "", "kubeconfig of the cluster")
	cmd.Flags().StringVar(&a.context, "member-context", "", "context in that kubeconfig (default: the current one)")
}

func (a *memberAccess) config() (*rest.Config, error) {
	if err := connect.RequireFile("--member-kubeconfig", a.kubeconfig); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: a.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: a.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("use --member-kubeconfig: %w", err)
	}
	return config, nil
}

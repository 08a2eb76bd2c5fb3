package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/meshservice/convert"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// unaskedTimeout is how long `convert` waits for a cluster that no flag names.
const unaskedTimeout = "10s"

// findPorts finds the names of ports: in the files of --services, or in the cluster.
func (c *converter) findPorts(cmd *cobra.Command, flags *connect.Flags, stdin io.Reader, inputs []convertInput) error {
	services := convert.NewServices(c.systemNamespace)
	if len(c.services) > 0 {
		c.options.Ports, c.options.Unknown = services.Ports, "--services has none of that name"
		return c.readServices(services, stdin, *flags.Namespace)
	}
	asks, err := c.asksForPorts(inputs)
	if err != nil || !asks {
		return err
	}
	named := slices.ContainsFunc([]string{"kubeconfig", "context", "cluster", "user"}, cmd.Flags().Changed)
	if !named && *flags.Timeout == "0" {
		*flags.Timeout = unaskedTimeout
	}
	cluster, err := flags.Connect()
	if err == nil {
		err = listServices(cmd.Context(), cluster.Client, services)
	}
	switch {
	case err == nil:
		c.options.Ports, c.options.Unknown = services.Ports, "the cluster has no Service or MeshService of that name"
	case named:
		return err
	default:
		c.notLookedUp, c.options.Unknown = err, "no cluster was asked"
	}
	return nil
}

// asksForPorts says whether the names of any ports matter.
func (c *converter) asksForPorts(inputs []convertInput) (asks bool, err error) {
	trial := converter{options: c.options}
	trial.options.Ports = func(string, string) []successor.Port {
		asks = true
		return nil
	}
	_, err = trial.convert(inputs)
	return asks, err
}

func (c *converter) readServices(services *convert.Services, stdin io.Reader, namespace string) error {
	total := 0
	for _, from := range c.services {
		paths, err := listFiles(from)
		if err != nil {
			return err
		}
		for _, path := range paths {
			name, text, err := console.ReadFile(stdin, path)
			if err != nil {
				return err
			}
			count, err := services.Read(text, namespace)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			total += count
		}
	}
	if total == 0 {
		return fmt.Errorf("there is no Service and no MeshService in %s: give their manifests with --services", strings.Join(c.services, ", "))
	}
	return nil
}

// listServices reads the Services and MeshServices of a cluster. It may lack the CRD of MeshServices.
func listServices(ctx context.Context, reader client.Reader, services *convert.Services) error {
	var all corev1.ServiceList
	if err := reader.List(ctx, &all); err != nil {
		return fmt.Errorf("list each Service: %w", err)
	}
	for i := range all.Items {
		services.AddService(&all.Items[i])
	}
	var meshServices kumav1alpha1.MeshServiceList
	if err := reader.List(ctx, &meshServices); meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("list each MeshService: %w", err)
	}
	for i := range meshServices.Items {
		services.AddMeshService(&meshServices.Items[i])
	}
	return nil
}

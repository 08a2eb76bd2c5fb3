package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/crds"
)

func newCRDsCommand(c *connect.Flags, streams Streams) *cobra.Command {
	cmd := commandGroup(&cobra.Command{
		Use:   "crds",
		Short: "Print or install Fairlead's CRDs, or migrate stored objects",
	})
	cmd.AddCommand(newCRDsPrintCommand(streams), newCRDsInstallCommand(c, streams), newCRDsMigrateCommand(c, streams))
	return cmd
}

func newCRDsPrintCommand(streams Streams) *cobra.Command {
	var webhook crdWebhook
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the CRDs as YAML",
		Long: `Print the CRDs as YAML.

` + versionsHelp,
		Example: "  fairlead crds print | kubectl apply --server-side -f -",
		Args:    console.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			converts, err := webhook.read()
			if err != nil {
				return err
			}
			return crds.Print(streams.Out, converts)
		},
	}
	webhook.addFlags(cmd)
	return cmd
}

func newCRDsInstallCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	var webhook crdWebhook
	options := crds.Options{Timeout: time.Minute}
	cmd := &cobra.Command{
		Use:   "install [NAME...]",
		Short: "Install or upgrade the CRDs, and wait until they are served",
		Long: `Install or upgrade all CRDs, or the named ones, and wait until they are served.

A newer schema in the cluster is kept. CRDs that Fairlead has not installed are not changed, unless --take-over is given.

` + versionsHelp + ` A CRD
that has a webhook keeps it, and a CRD with objects that only a webhook can convert is not changed.`,
		Example: "  fairlead crds install\n  fairlead crds install materializes.materialize.cloud --take-over",
		RunE: func(cmd *cobra.Command, names []string) error {
			if _, err := crds.Named(names...); err != nil {
				return console.UsageErrorf("%v: `fairlead crds print` shows those that are", err)
			}
			options.Names = names
			converts, err := webhook.read()
			if err != nil {
				return err
			}
			options.Webhook = converts
			config, err := c.Config()
			if err != nil {
				return err
			}
			results, installErr := crds.Install(cmd.Context(), config, options)
			if err := format.Print(streams.Out, append([]crds.Result{}, results...), func() { printCRDResults(streams.Out, results) }); err != nil {
				return err
			}
			return installErr
		},
	}
	cmd.Flags().BoolVar(&options.TakeOver, "take-over", options.TakeOver, "take over CRDs that Fairlead has not installed")
	cmd.Flags().DurationVar(&options.Timeout, "timeout", options.Timeout, "how long to wait for all of them")
	webhook.addFlags(cmd)
	format.AddFlag(cmd, render.JSON, render.YAML)
	return cmd
}

func printCRDResults(w io.Writer, results []crds.Result) {
	var rows [][]string
	for _, r := range results {
		rows = append(rows, []string{r.Name, string(r.Outcome), r.Message})
	}
	render.Table(w, render.Columns, []string{"CRD", "OUTCOME", "MESSAGE"}, rows)
}

func newCRDsMigrateCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	options := crds.MigrateOptions{Rate: 50}
	cmd := &cobra.Command{
		Use:   "migrate [NAME...]",
		Short: "Rewrite stored objects in the storage version of their CRD",
		Long: `Rewrite all stored objects in the storage version of their CRD, for all CRDs or the named ones.

The content of objects does not change. When all objects are rewritten, the older versions are removed from
status.storedVersions of the CRD, so that a later Fairlead can stop serving them. The operator does the same when it
starts. An interrupted migration can be run again.`,
		Example: "  fairlead crds migrate materializes.materialize.cloud",
		RunE: func(cmd *cobra.Command, names []string) error {
			if _, err := crds.Named(names...); err != nil {
				return console.UsageErrorf("%v: `fairlead crds print` shows those that are", err)
			}
			if options.Rate <= 0 {
				return console.UsageErrorf("--rate %g is not more than 0", options.Rate)
			}
			config, err := c.Config()
			if err != nil {
				return err
			}
			options.Names = names
			options.Progress = func(m crds.Migration) { printMigrationProgress(streams.Err, m) }
			options.Refused = func(object string, err error) {
				fmt.Fprintf(streams.Err, "%s was left in its older version: %s\n", object, console.OneLine(err))
			}
			migrations, migrateErr := crds.Migrate(cmd.Context(), config, options)
			if err := format.Print(streams.Out, append([]crds.Migration{}, migrations...), func() { printMigrations(streams.Out, migrations) }); err != nil {
				return err
			}
			return migrateErr
		},
	}
	cmd.Flags().Float32Var(&options.Rate, "rate", options.Rate, "how many objects to rewrite in a second at most")
	format.AddFlag(cmd, render.JSON, render.YAML)
	return cmd
}

// printMigrationProgress says nothing of CRDs that have nothing to migrate.
func printMigrationProgress(w io.Writer, m crds.Migration) {
	if len(m.From) == 0 || m.Done {
		return
	}
	seen := int64(m.Rewritten + m.Failed)
	fmt.Fprintf(w, "%s: %d of %d objects from %s to %s\n", m.Name, seen, seen+m.Remaining, strings.Join(m.From, ", "), m.To)
}

func printMigrations(w io.Writer, migrations []crds.Migration) {
	if len(migrations) == 0 {
		return
	}
	var rows [][]string
	for _, m := range migrations {
		outcome := "Left behind"
		switch {
		case len(m.From) == 0 && m.Done:
			outcome = "Nothing to do"
		case m.Done:
			outcome = "Migrated"
		}
		rows = append(rows, []string{
			m.Name, render.OrDash(strings.Join(m.From, ",")), render.OrDash(m.To), strconv.Itoa(m.Rewritten), strconv.Itoa(m.Failed), outcome,
		})
	}
	render.Table(w, render.Columns, []string{"CRD", "FROM", "TO", "REWRITTEN", "FAILED", "OUTCOME"}, rows)
}

const versionsHelp = `A CRD whose versions differ needs the operator's webhook, which converts between them. An operator that
installs the CRDs configures the webhook itself. Without such an operator, and without --webhook-service, the
CRD serves only its storage version.`

// crdWebhook says where the operator's webhook is, for those who do not let the operator write CRDs.
type crdWebhook struct{ service, authority string }

func (w *crdWebhook) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.service, "webhook-service", "",
		"Service NAMESPACE/NAME:PORT of the operator's webhook, which converts between versions")
	cmd.Flags().StringVar(&w.authority, "webhook-ca-file", "", "file with the CA of the webhook's certificate, in PEM")
}

// read is nil when nothing was said.
func (w *crdWebhook) read() (*crds.Webhook, error) {
	service, err := crds.ParseService(w.service)
	if err != nil {
		return nil, console.UsageErrorf("--webhook-service: %v", err)
	}
	if (service == nil) != (w.authority == "") {
		return nil, console.UsageErrorf("--webhook-service and --webhook-ca-file go together: where the webhook is, and why to trust it")
	}
	if service == nil {
		return nil, nil
	}
	authority, err := os.ReadFile(w.authority)
	if err != nil {
		return nil, fmt.Errorf("read the authority of the webhook: %w", err)
	}
	if !bytes.Contains(authority, []byte("BEGIN CERTIFICATE")) {
		return nil, console.UsageErrorf("--webhook-ca-file: there is no certificate in PEM in %s", w.authority)
	}
	return &crds.Webhook{Service: service, Trust: crds.StaticTrust(authority)}, nil
}

package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/crds"
)

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
			printed := make([]crdMigration, 0, len(migrations))
			for _, m := range migrations {
				printed = append(printed, newCRDMigration(m))
			}
			if encoded, err := format.Encode(streams.Out, printed); err != nil {
				return err
			} else if !encoded && len(printed) > 0 {
				printMigrations(streams.Out, printed)
			}
			return migrateErr
		},
	}
	cmd.Flags().Float32Var(&options.Rate, "rate", options.Rate, "how many objects to rewrite in a second at most")
	format.AddFlag(cmd, render.JSON, render.YAML)
	return cmd
}

type crdMigration struct {
	Name string `json:"name"`
	// From are the older versions; none means that there was nothing to do.
	From      []string `json:"from,omitempty"`
	To        string   `json:"to,omitempty"`
	Rewritten int      `json:"rewritten"`
	Failed    int      `json:"failed"`
	Done      bool     `json:"done"`
}

func newCRDMigration(m crds.Migration) crdMigration {
	return crdMigration{Name: m.Name, From: m.From, To: m.To, Rewritten: m.Rewritten, Failed: m.Failed, Done: m.Done}
}

// printMigrationProgress says nothing of CRDs that have nothing to migrate.
func printMigrationProgress(w io.Writer, m crds.Migration) {
	if len(m.From) == 0 || m.Done {
		return
	}
	seen := int64(m.Rewritten + m.Failed)
	fmt.Fprintf(w, "%s: %d of %d objects from %s to %s\n", m.Name, seen, seen+m.Remaining, strings.Join(m.From, ", "), m.To)
}

func printMigrations(w io.Writer, migrations []crdMigration) {
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

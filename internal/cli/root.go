// Package cli is the command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/adoption"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
)

// Streams are where a command reads from and writes to.
type Streams = console.Streams

// Main runs the command line and returns the exit code.
func Main(streams Streams, args []string) int {
	return MainAs(programName, streams, args)
}

// MainAs is Main under the name that the program was called by: kubectl calls its plugin kubectl-fairlead.
func MainAs(program string, streams Streams, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The first signal asks to stop; with the handler gone, a second one ends the process at once.
	context.AfterFunc(ctx, stop)

	if streams.In == nil {
		streams.In = os.Stdin
	}
	streams.Out, streams.Err = console.PlainOnTerminal(streams.Out), console.PlainOnTerminal(streams.Err)
	root, started := newRoot(streams)
	renameTo(root, displayName(program))
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	code := console.ExitCode(err, *started)
	if err != nil && err.Error() != "" {
		text := console.OneLine(err)
		if !*started && !errors.As(err, &console.ExitError{}) {
			// An error of the parser of flags does not say how the command is called.
			text += console.UsageHint(cmd)
		}
		fmt.Fprintln(streams.Err, "error:", text)
	}
	return code
}

// programName is how the program is called, unless kubectl does.
const programName = "fairlead"

// displayName is how users call the program.
func displayName(program string) string {
	if strings.TrimSuffix(filepath.Base(program), ".exe") == "kubectl-"+programName {
		return "kubectl " + programName
	}
	return programName
}

// renameTo has usage and examples show a display name.
func renameTo(cmd *cobra.Command, display string) {
	if display == programName {
		return
	}
	if !cmd.HasParent() {
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: display}
	}
	cmd.Example = strings.ReplaceAll(cmd.Example, programName+" ", display+" ")
	for _, child := range cmd.Commands() {
		renameTo(child, display)
	}
}

func newRoot(streams Streams) (root *cobra.Command, started *bool) {
	started = new(bool)
	root = &cobra.Command{
		Use:   programName,
		Short: "Moves what is running to where it should run next, with nobody noticing",
		Long: `Fairlead moves what is running to where it should run next, with nobody noticing.

Exit codes: 0 done or nothing to do, 1 failed, 2 wrong usage,
3 there are changes (plan, convert --check) or still in progress (status, watch).`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Flags and arguments are in order when this runs, but for those that are missing.
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { *started = cmd.ValidateRequiredFlags() == nil },
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)

	c := connect.NewFlags()
	c.AddFlags(root.PersistentFlags())
	addGroup(root, "Before and during a move:",
		newPlanCommand(c, streams),
		newStatusCommand(c, streams),
		newWatchCommand(c, streams),
		newCheckCommand(c, streams),
	)
	addGroup(root, "Start, stop and go on:",
		newMigrateCommand(c, streams),
		newConvertCommand(c, streams),
		newPauseCommand(c, streams),
		newResumeCommand(c, streams),
		newRetryCommand(c, streams),
		newPromoteCommand(c, streams),
		newAbortCommand(c, streams),
	)
	addGroup(root, "Clusters and what runs in them:",
		adoption.NewJoinCommand(c, streams),
		adoption.NewUnjoinCommand(c, streams),
		adoption.NewClustersCommand(c, streams),
		adoption.NewAdoptCommand(c, streams),
	)
	own := addGroup(root, "Fairlead itself:",
		newOperatorCommand(c, streams),
		newServeMeshCommand(c, streams),
		newCRDsCommand(c, streams),
		newUninstallCommand(c, streams),
		newVersionCommand(c, streams),
	)
	root.SetHelpCommandGroupID(own)
	root.SetCompletionCommandGroupID(own)
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		commandGroup(completion)
	}
	return root, started
}

// addGroup adds commands that the help shows under a title of their own, and returns the group's ID.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) string {
	group := &cobra.Group{ID: title, Title: title}
	root.AddGroup(group)
	for _, cmd := range commands {
		cmd.GroupID = group.ID
	}
	root.AddCommand(commands...)
	return group.ID
}

// commandGroup is a command that only holds others: alone it shows them, and one that it does not have is wrong usage.
func commandGroup(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return console.UsageErrorf("unknown command %q for %q; see `%s --help`", args[0], cmd.CommandPath(), cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

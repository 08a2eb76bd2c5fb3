package console

import (
	"strings"

	"github.com/spf13/cobra"
)

// RequireName takes one argument.
func RequireName(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return UsageErrorf("%s takes NAME, but got %q%s", cmd.CommandPath(), strings.Join(args, " "), UsageHint(cmd))
}

// NoArguments takes none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UsageErrorf("%s takes no arguments, but got %q%s", cmd.CommandPath(), strings.Join(args, " "), UsageHint(cmd))
}

// UsageHint is how a command is called, with its first example.
func UsageHint(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "; see `" + cmd.CommandPath() + " --help`"
	}
	hint := "; usage: `" + strings.TrimSuffix(cmd.UseLine(), " [flags]") + "`"
	if example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n"); example != "" {
		hint += ", such as `" + example + "`"
	}
	return hint
}

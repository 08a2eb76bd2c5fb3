package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/console"
)

func requireName(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return console.UsageErrorf("%s takes NAME, but got %q%s", cmd.CommandPath(), strings.Join(args, " "), usageHint(cmd))
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return console.UsageErrorf("%s takes no arguments, but got %q%s", cmd.CommandPath(), strings.Join(args, " "), usageHint(cmd))
}

// usageHint is how a command is called, with its first example.
func usageHint(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "; see `" + cmd.CommandPath() + " --help`"
	}
	hint := "; usage: `" + strings.TrimSuffix(cmd.UseLine(), " [flags]") + "`"
	if example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n"); example != "" {
		hint += ", such as `" + example + "`"
	}
	return hint
}

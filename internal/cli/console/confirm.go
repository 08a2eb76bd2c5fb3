// Package console has what every command needs to talk to its user: streams, confirmation, exit codes.
package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Streams are where a command reads from and writes to.
type Streams struct {
	// In is the standard input, if there is no other.
	In       io.Reader
	Out, Err io.Writer
}

// ReadFile reads a file, or the standard input if the path is -. The name is the one for messages.
func ReadFile(stdin io.Reader, path string) (name string, content []byte, err error) {
	if path == "-" {
		content, err = io.ReadAll(stdin)
		return "standard input", content, err
	}
	content, err = os.ReadFile(path)
	return path, content, err
}

// Confirmation is asked for before a command does what cannot be undone.
type Confirmation struct {
	yes bool
	// DryRun asks for nothing, because nothing is done.
	DryRun bool
}

// AddFlag adds --yes.
func (c *Confirmation) AddFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask for confirmation")
}

// RequireTerminal fails, before anything is done, if there is something to ask and nobody can answer.
func (c *Confirmation) RequireTerminal(cmd *cobra.Command, in io.Reader) error {
	if file, ok := in.(*os.File); c == nil || c.yes || c.DryRun || ok && term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return UsageErrorf("%s asks before it does anything, and there is no terminal to ask at: give --yes", cmd.CommandPath())
}

// Ask returns nil if the answer is yes, or --yes was given.
func (c *Confirmation) Ask(ctx context.Context, streams Streams, question string) error {
	if c.yes {
		return nil
	}
	agreed, err := askYesNo(ctx, streams.In, streams.Out, question)
	if err != nil {
		return err
	}
	if !agreed {
		fmt.Fprintln(streams.Out, "nothing was changed")
		return ExitError{Code: ExitFailed}
	}
	return nil
}

// askYesNo takes anything but y or yes for a no.
func askYesNo(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() {
		// Where there is no answer, what has been read until then is it.
		line, _ := bufio.NewReader(in).ReadString('\n')
		answers <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return false, context.Cause(ctx)
	case answer := <-answers:
		if !strings.HasSuffix(answer, "\n") {
			fmt.Fprintln(out)
		}
		answer = strings.ToLower(strings.TrimSpace(answer))
		return answer == "y" || answer == "yes", nil
	}
}

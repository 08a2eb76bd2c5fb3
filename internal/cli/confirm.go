package cli

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

// confirmation is what a command asks for before it does what nobody can take back.
type confirmation struct{ yes bool }

func (c *confirmation) addFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do it without asking")
}

// possible tells, before anything is done, whether there is anybody to ask.
func (c *confirmation) requireTerminal(cmd *cobra.Command, in io.Reader) error {
	if file, ok := in.(*os.File); c.yes || ok && term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return usageErrorf("%s asks before it does anything, and there is no terminal to ask at: give --yes", cmd.CommandPath())
}

// ask asks, if need be.
func (c *confirmation) ask(ctx context.Context, streams Streams, question string) (bool, error) {
	if c.yes {
		return true, nil
	}
	return askYesNo(ctx, streams.In, streams.Out, question)
}

// ask takes nothing but a clear yes for one.
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

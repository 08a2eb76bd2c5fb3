package cli

import (
	"errors"
	"fmt"
	"strings"
)

// Exit codes that scripts rely on.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// exitUnfinished: `plan` found changes, or what `status` looks at is still in progress.
	exitUnfinished = 3
)

// exitError ends the command with a code of its own; without a message it is said in the output already.
type exitError struct {
	code    int
	message string
}

func (e exitError) Error() string { return e.message }

func usageErrorf(format string, args ...any) error {
	return exitError{code: exitUsage, message: fmt.Sprintf(format, args...)}
}

// exitCode of an error that a command returned; one from before it started is about how it was called.
func exitCode(err error, started bool) int {
	var exit exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case !started:
		return exitUsage
	}
	return exitFailed
}

// oneLine keeps an error from breaking the output of scripts and logs apart.
func oneLine(err error) string {
	var parts []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

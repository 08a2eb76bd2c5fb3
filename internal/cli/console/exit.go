package console

import (
	"errors"
	"fmt"
	"strings"
)

// Exit codes that scripts rely on.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	// ExitUnfinished: `plan` found changes, or what `status` looks at is still in progress.
	ExitUnfinished = 3
)

// ExitError ends the command with a code of its own; without a message, the output explains it.
type ExitError struct {
	Code    int
	Message string
}

func (e ExitError) Error() string { return e.Message }

func UsageErrorf(format string, args ...any) error {
	return ExitError{Code: ExitUsage, Message: fmt.Sprintf(format, args...)}
}

// ExitCode of an error that a command returned; one from before it started is about how it was called.
func ExitCode(err error, started bool) int {
	var exit ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	case !started:
		return ExitUsage
	}
	return ExitFailed
}

// OneLine keeps an error from breaking the output of scripts and logs apart.
func OneLine(err error) string {
	var parts []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

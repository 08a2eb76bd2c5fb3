package charts

import (
	"io/fs"
	"regexp"
	"strings"
)

// unreachable is a source that does not answer, or not with what was asked for.
type unreachable struct{ cause error }

func (e *unreachable) Unwrap() error { return e.cause }

func (e *unreachable) Error() string {
	return stableMessage(e.cause) + "; check --chart-repository, or use a directory of charts with --chart-dir"
}

// missing is a chart that its source does not have.
type missing string

func (m missing) Error() string { return string(m) }

func (m missing) Unwrap() error { return fs.ErrNotExist }

// maxErrorLength is how much of an error is told that others may have worded.
const maxErrorLength = 400

// A connection's own end is another port each time. What is told of an error ends up in a status, and a status that
// differs with each attempt is written with each attempt.
var localAddress = regexp.MustCompile(`\S+:\d+->`)

func stableMessage(err error) string {
	text := localAddress.ReplaceAllString(err.Error(), "")
	if len(text) > maxErrorLength {
		text = strings.ToValidUTF8(text[:maxErrorLength], "") + "..."
	}
	return text
}

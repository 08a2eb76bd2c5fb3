package charts

import (
	"io/fs"
	"regexp"
	"strings"
)

// unreachableError means that a source does not respond, or not as expected.
type unreachableError struct{ cause error }

func (e *unreachableError) Unwrap() error { return e.cause }

func (e *unreachableError) Error() string {
	return stableMessage(e.cause) + "; check --chart-repository, or use a directory of charts with --chart-dir"
}

// missingChartError means that the source does not have a chart.
type missingChartError string

func (m missingChartError) Error() string { return string(m) }

func (m missingChartError) Unwrap() error { return fs.ErrNotExist }

// maxErrorLength bounds quoted errors.
const maxErrorLength = 400

// The local port of a connection differs each time, and a status that differs with each attempt would be written with each
// attempt.
var localAddress = regexp.MustCompile(`\S+:\d+->`)

func stableMessage(err error) string {
	text := localAddress.ReplaceAllString(err.Error(), "")
	if len(text) > maxErrorLength {
		text = strings.ToValidUTF8(text[:maxErrorLength], "") + "..."
	}
	return text
}

// Package console has what every command needs to talk to its user: streams, confirmation, exit codes.
package console

import (
	"io"
)

// Streams are where a command reads from and writes to.
type Streams struct {
	// In is the standard input, if there is no other.
	In       io.Reader
	Out, Err io.Writer
}

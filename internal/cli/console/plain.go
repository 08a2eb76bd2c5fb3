package console

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/fairlead/fairlead/internal/passage"
)

// plainWriter is a terminal to which only plain text is written.
type plainWriter struct{ *os.File }

func (w plainWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.File, passage.Printable(strings.ReplaceAll(string(text), "\r\n", "\n"))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// WriteString is not that of the file.
func (w plainWriter) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

// ReadFrom is not that of the file.
func (w plainWriter) ReadFrom(from io.Reader) (int64, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return 0, err
	}
	n, err := w.Write(text)
	return int64(n), err
}

// PlainOnTerminal has only plain text written if a stream is a terminal. What goes elsewhere stays as it is.
func PlainOnTerminal(out io.Writer) io.Writer {
	if file := TerminalOf(out); file != nil {
		return plainWriter{file}
	}
	return out
}

// TerminalOf is the terminal that a stream writes to, nil if it is none.
func TerminalOf(out io.Writer) *os.File {
	switch w := out.(type) {
	case plainWriter:
		return w.File
	case *os.File:
		if term.IsTerminal(int(w.Fd())) {
			return w
		}
	}
	return nil
}

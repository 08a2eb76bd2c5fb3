package console

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlainWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "terminal")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := plainWriter{file}
	for _, write := range []func() (int, error){
		func() (int, error) { return w.Write([]byte("a\x1b[2J\r\n")) },
		func() (int, error) { return io.WriteString(w, "b\x1b[2J\n") },
		func() (int, error) { n, err := io.Copy(w, strings.NewReader("c\x1b[2J\n")); return int(n), err },
	} {
		if n, err := write(); err != nil || n < 6 {
			t.Errorf("%d, %v", n, err)
		}
	}
	got, err := os.ReadFile(path)
	if want := "a\\x1b[2J\nb\\x1b[2J\nc\\x1b[2J\n"; err != nil || string(got) != want {
		t.Errorf("written is %q, %v", got, err)
	}
	if TerminalOf(w) != file || TerminalOf(file) != nil {
		t.Error("only what is written to a terminal is changed")
	}
	// A pipe gets what there is: manifests that are converted stay as they were.
	var out bytes.Buffer
	if PlainOnTerminal(&out) != io.Writer(&out) || PlainOnTerminal(file) != io.Writer(file) {
		t.Error("what is no terminal is written to as it is")
	}
}

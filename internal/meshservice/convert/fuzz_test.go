package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzConvert: whatever is in a file, nothing of it is lost, what comes out can be read, and converting it again adds
// nothing.
func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, document := range documentsIn(text) {
			f.Add(document.text, uint16(80))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, port uint16) {
		// Documents around it, of which nothing changes.
		before, after := []byte("x:   1 # one\n"), []byte("\n---\ny:  [ 2 ]\n")
		whole := bytes.Join([][]byte{before, []byte("---\n"), in, after}, nil)
		o := Options{Port: port}
		out, report, err := Convert(whole, o)
		if err != nil {
			return
		}
		checkOnlyAdded(t, whole, out, report)
		checkAgain(t, out, report, o)
		o.Ports = namedPorts
		if out, report, err = Convert(whole, o); err != nil {
			t.Fatalf("with the names of ports: %v", err)
		}
		checkOnlyAdded(t, whole, out, report)
		checkAgain(t, out, report, o)
		if !bytes.HasPrefix(out, before) || !bytes.HasSuffix(out, after) {
			t.Errorf("what is around was changed: %q", out)
		}
	})
}

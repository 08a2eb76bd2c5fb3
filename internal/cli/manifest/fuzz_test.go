package manifest

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// FuzzReadObjects: objects that are read from a file are the same when they are written and read again.
func FuzzReadObjects(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# nothing\n---\nkind: List\napiVersion: v1\nitems: [{apiVersion: v1, kind: Secret}]\n"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[1,null,{}]}`))
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"))
	f.Add([]byte("---\n---\n"))
	f.Add([]byte("a: 1\na: 2\n"))
	f.Add([]byte("items: {}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := readObjects(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		for _, object := range all {
			written, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Skip("a key that is too long to be written")
			}
			again.WriteString("---\n")
			again.Write(written)
		}
		second, err := readObjects(&again)
		if err != nil {
			t.Fatalf("%q cannot be read again: %v", again.String(), err)
		}
		if len(second) != len(all) {
			t.Skip("a list in a list")
		}
		for i := range all {
			if diff := cmp.Diff(all[i].Object, second[i].Object); diff != "" {
				t.Errorf("object %d (-first +second):\n%s", i, diff)
			}
		}
	})
}

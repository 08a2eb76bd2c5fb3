package crds

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "bring schema.lock up to the manifests")

const lockHeader = "# Schema version and content of every CRD. Kept by: go generate ./internal/crds\n"

// TestSchemaLock fails when a manifest has changed and its schema version has
// not: clusters would not get the new schema, or an older Fairlead would undo it.
func TestSchemaLock(t *testing.T) {
	committed, err := os.ReadFile("schema.lock")
	if err != nil {
		t.Fatal(err)
	}
	have, err := parseLock(committed)
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := contentHashes()
	if err != nil {
		t.Fatal(err)
	}
	want := renderLock(advanceLock(have, hashes))
	if bytes.Equal(want, committed) {
		return
	}
	if !*update {
		t.Fatalf("schema.lock is not up to the manifests (run go generate ./internal/crds; -committed +wanted):\n%s",
			cmp.Diff(string(committed), string(want)))
	}
	if err := os.WriteFile("schema.lock", want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAdvanceLock(t *testing.T) {
	tests := map[string]struct {
		have   map[string]locked
		hashes map[string]string
		want   map[string]locked
	}{
		"a new CRD begins at 1": {
			hashes: map[string]string{"boats": "a"},
			want:   map[string]locked{"boats": {1, "a"}},
		},
		"unchanged": {
			have:   map[string]locked{"boats": {4, "a"}},
			hashes: map[string]string{"boats": "a"},
			want:   map[string]locked{"boats": {4, "a"}},
		},
		"only what changed moves on": {
			have:   map[string]locked{"boats": {4, "a"}, "crews": {2, "x"}},
			hashes: map[string]string{"boats": "b", "crews": "x"},
			want:   map[string]locked{"boats": {5, "b"}, "crews": {2, "x"}},
		},
		"a CRD that is gone is remembered, lest it return with an older version": {
			have:   map[string]locked{"boats": {4, "a"}},
			hashes: map[string]string{"crews": "x"},
			want:   map[string]locked{"boats": {4, "a"}, "crews": {1, "x"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := advanceLock(tc.have, tc.hashes)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(locked{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if again, err := parseLock(renderLock(got)); err != nil || !maps.Equal(got, again) {
				t.Errorf("does not survive being written and read: %v, %v", again, err)
			}
		})
	}
}

func TestParseLockRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a word for a version": {"boats one sha256:a", `schema.lock line 1: want name, version and hash, have "boats one sha256:a"`},
		"a line cut short":     {"# comment\n\nboats 1", `schema.lock line 3: want name, version and hash, have "boats 1"`},
		"a CRD twice":          {"boats 1 a\nboats 2 b", "schema.lock line 2: boats is there twice"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parseLock([]byte(tc.text)); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func contentHashes() (map[string]string, error) {
	crds, err := load(manifests)
	if err != nil {
		return nil, err
	}
	hashes := map[string]string{}
	for _, crd := range crds {
		hashes[crd.Name] = fmt.Sprintf("sha256:%x", sha256.Sum256(toJSON(manifest(crd))))
	}
	return hashes, nil
}

func advanceLock(have map[string]locked, hashes map[string]string) map[string]locked {
	next := map[string]locked{}
	maps.Copy(next, have)
	for name, hash := range hashes {
		if entry := next[name]; entry.hash != hash {
			next[name] = locked{version: entry.version + 1, hash: hash}
		}
	}
	return next
}

func renderLock(all map[string]locked) []byte {
	var b strings.Builder
	b.WriteString(lockHeader)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s %d %s\n", name, all[name].version, all[name].hash)
	}
	return []byte(b.String())
}

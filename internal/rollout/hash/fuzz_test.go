package hash

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// FuzzCanonical writes a spec in all the ways that mean the same: with its keys in another order, as a client that decoded
// it writes it again, and with the defaults of either version of the API.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{least, rich, defaulted, "{}", "environmentdExtraArgs: ['', a]", "podLabels: {'': ''}",
		"environmentdScratchVolumeStorageRequirement: 1e-9", "rolloutRequestTimeout: 1.5h"} {
		text, err := yaml.YAMLToJSON([]byte(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "again")
	}
	fillers := defaulters(f)

	f.Fuzz(func(t *testing.T, text []byte, annotation string) {
		var tree map[string]any
		first := &v1alpha2.Materialize{}
		if json.Unmarshal(text, &tree) != nil || json.Unmarshal(text, &first.Spec) != nil {
			t.Skip("not a spec")
		}
		annotate(first, annotation)
		want := string(canonical(first))
		if !json.Valid([]byte(want)) {
			t.Fatalf("not JSON: %s", want)
		}
		same := func(how string, spec []byte) {
			t.Helper()
			m := &v1alpha2.Materialize{}
			if err := json.Unmarshal(spec, &m.Spec); err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			annotate(m, annotation)
			if diff := cmp.Diff(want, string(canonical(m))); diff != "" {
				t.Errorf("%s: %s", how, diff)
			}
			if rolls, doesNot := Changes(first, m); rolls != nil || doesNot != nil {
				t.Errorf("%s: changes: %v, %v", how, rolls, doesNot)
			}
		}

		again, err := json.Marshal(first.Spec)
		if err != nil {
			t.Skip("a quantity that cannot be written")
		}
		same("written by a client", again)

		// From here on one spelling per key: which of two wins depends on the order.
		if err := json.Unmarshal(again, &tree); err != nil {
			t.Fatal(err)
		}
		same("keys from last to first", backwards(nil, tree))
		for version, fill := range fillers {
			filled := maps.Clone(tree)
			fill(filled)
			spec, err := json.Marshal(filled)
			if err != nil {
				t.Fatal(err)
			}
			same("with the defaults of "+version, spec)
		}

		other := &v1alpha2.Materialize{}
		other.Spec.EnableRbac = true
		if rolls, _ := Changes(first, other); (rolls != nil) != (want != string(canonical(other))) {
			t.Errorf("what is told to roll is %v, between\n%s\n%s", rolls, want, canonical(other))
		}
	})
}

// backwards writes JSON with the keys of each object from last to first.
func backwards(to []byte, value any) []byte {
	switch value := value.(type) {
	case map[string]any:
		var parts [][]byte
		for _, key := range slices.Backward(slices.Sorted(maps.Keys(value))) {
			quoted, _ := json.Marshal(key)
			parts = append(parts, backwards(append(quoted, ':'), value[key]))
		}
		return slices.Concat(to, []byte("{"), bytes.Join(parts, []byte(",")), []byte("}"))
	case []any:
		var parts [][]byte
		for _, item := range value {
			parts = append(parts, backwards(nil, item))
		}
		return slices.Concat(to, []byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
	}
	text, _ := json.Marshal(value)
	return append(to, text...)
}

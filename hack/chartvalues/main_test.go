package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDescribe(t *testing.T) {
	got, err := describe([]byte(`# How many.
replicas: 2

# Who may: a | b,
# or none.
access:
  # The groups.
  groups: [a, b]
  # Their label.
  label: ""
# What each takes.
resources:
  requests:
    cpu: 50m
`))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"| `replicas` | `2` | How many. |",
		"| **`access`** | | Who may: a \\| b, or none. |",
		"| `access.groups` | `[\"a\",\"b\"]` | The groups. |",
		"| `access.label` |  | Their label. |",
		"| `resources` | `{\"requests\":{\"cpu\":\"50m\"}}` | What each takes. |",
		"",
	}, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := describe([]byte("# A.\na: {}\nimage:\n  # The tag.\n  tag: x\n  digest: y\n")); err == nil || !strings.Contains(err.Error(), "image.digest has no comment") {
		t.Errorf("a value without a comment: %v", err)
	}
}

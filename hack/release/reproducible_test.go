package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSameReleaseTwice builds the commit in two directories, the second time with nothing compiled beforehand.
func TestSameReleaseTwice(t *testing.T) {
	if os.Getenv("FAIRLEAD_TESTS") != "full" {
		t.Skip("compiles Fairlead twice: FAIRLEAD_TESTS=full")
	}
	root, err := git(t.Context(), ".", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	checksums := func() string {
		t.Helper()
		clone, dist := filepath.Join(t.TempDir(), "source"), filepath.Join(t.TempDir(), "dist")
		if _, err := git(t.Context(), root, "clone", "-q", root, clone); err != nil {
			t.Fatal(err)
		}
		args := []string{"-version", "v0.0.1", "-root", clone, "-dist", dist, "-platforms", "linux/amd64", "-tags", "kustomize_disable_go_plugin_support"}
		if err := run(t.Context(), args, io.Discard); err != nil {
			t.Fatal(err)
		}
		list, err := os.ReadFile(filepath.Join(dist, checksumsFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(list)
	}
	first := checksums()
	t.Setenv("GOCACHE", t.TempDir())
	if diff := cmp.Diff(first, checksums()); diff != "" {
		t.Errorf("the same commit gives two releases: %s", diff)
	}
}

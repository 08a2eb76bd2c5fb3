package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// To make, `$|` is a variable.
func TestMakePassesTheRegularExpression(t *testing.T) {
	// What make reads Go does not see: without this the result of an earlier Makefile would be kept.
	if _, err := os.Stat("../../Makefile"); err != nil {
		t.Fatal(err)
	}
	const run = "^TestA$|^TestB$"
	for _, target := range []string{"one", "flake"} {
		command := exec.Command("make", "-n", target, "RUN="+run, "PKG=./some/package")
		command.Dir = "../.."
		printed, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, printed)
		}
		if want := "-run '" + run + "' ./some/package"; !strings.Contains(string(printed), want) {
			t.Errorf("make %s does not pass %s:\n%s", target, want, printed)
		}
	}
}

// A registry takes the image with the digest that the chart pins only from the layout, and an asset of a release is a file. What
// was interrupted is published again, and what is published is left as it is.
func TestMakePublishes(t *testing.T) {
	const (
		images = "crane push DIR/dist/image registry.test/harbour/fairlead:0.1.0\n" +
			"helm push DIR/dist/fairlead-0.1.0.tgz oci://registry.test/harbour/charts\n"
		create = "gh release create v0.1.0 --verify-tag --draft --title Fairlead v0.1.0 --notes See CHANGELOG.md.\n"
		upload = "gh release upload v0.1.0 --clobber dist/checksums.txt dist/fairlead-0.1.0.tgz\n"
	)
	makefile, err := filepath.Abs("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		isDraft string
		want    string
		refused bool
	}{
		"nothing yet":                    {"", create + images + upload, false},
		"a draft from an earlier time":   {"true", images + upload, false},
		"a release that users have seen": {"false", "v0.1.0 is published, and stays as it is\n", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{
				"gh": `#!/bin/sh
case "$2" in
view) test -n "` + tc.isDraft + `" && echo "` + tc.isDraft + `" ;;
*) echo gh "$@" ;;
esac`,
				"dist/checksums.txt": "", "dist/fairlead-0.1.0.tgz": "", "dist/image/index.json": "", "localkube/go.mod": "",
			} {
				path := filepath.Join(dir, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			command := exec.Command("make", "-s", "-f", makefile, "publish", "VERSION=v0.1.0", "IMAGE=registry.test/harbour/fairlead", "CRANE_AND_HELM=echo")
			command.Dir = dir
			command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			said, err := command.CombinedOutput()
			got := strings.ReplaceAll(string(said), dir, "DIR")
			if refused := err != nil; refused != tc.refused || !strings.HasPrefix(got, tc.want) {
				t.Errorf("%v, it says\n%s\nwant\n%s", err, got, tc.want)
			}
		})
	}
}

// Workflows hold no logic: what they run, everybody can run.
func TestWorkflowsCallMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	called := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Jobs map[string]struct {
				Strategy struct{ Matrix struct{ Target []string } }
				Steps    []struct{ Run string }
			}
		}
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				if step.Run == "" {
					continue
				}
				targets := job.Strategy.Matrix.Target
				if step.Run != "make ${{ matrix.target }}" {
					targets = []string{strings.TrimPrefix(step.Run, "make ")}
				}
				for _, target := range targets {
					called[target] = true
					if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(makefile) {
						t.Errorf("%s runs %q, and %q is no target", file, step.Run, target)
					}
				}
			}
		}
	}
	for _, target := range []string{"test", "lint", "verify", "alerts", "e2e", "e2e-full", "race", "release", "publish"} {
		if !called[target] {
			t.Errorf("no workflow calls make %s", target)
		}
	}
}

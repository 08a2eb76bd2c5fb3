package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
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

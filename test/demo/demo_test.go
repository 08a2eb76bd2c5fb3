package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/test/cluster"
)

// TestDemo tells the whole story without the pauses. It goes no further when a command ends in another way than it should.
func TestDemo(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	demo := filepath.Join(t.TempDir(), "demo")
	build := exec.Command("go", "build", "-o", demo, "./test/demo")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	began := time.Now()
	output, err := exec.Command(demo, "--fast").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("told in %s", time.Since(began).Round(time.Second))
	// Wherever the lines were broken.
	told := strings.Join(strings.Fields(string(output)), " ")
	for _, line := range []string{
		"then 24 Deployments in 4 batches of at most 6",
		"Deployment legacy/mainframe: restart failed: Readiness timeout exceeded after 6s",
		"23 of 24 done, 1 failed, batch 4 of 4",
		"workloads to default-v1-26-0: Completed, 24 of 24 done",
	} {
		if !strings.Contains(told, line) {
			t.Errorf("nowhere does it say %q:\n%s", line, output)
		}
	}
	if end := string(output[strings.LastIndex(string(output), "get istios"):]); strings.Contains(end, "default-v1-24-0") {
		t.Errorf("the old control plane is still there at the end:\n%s", end)
	}
}

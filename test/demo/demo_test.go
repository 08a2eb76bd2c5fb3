package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/pages"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// storyVariable has the test binary be the demo: a story to tell.
const storyVariable = "FAIRLEAD_DEMO_STORY"

func TestMain(m *testing.M) {
	story := os.Getenv(storyVariable)
	if story == "" {
		cluster.Parallel(4)
		os.Exit(m.Run())
	}
	ctrl.SetLogger(logr.Discard())
	if err := run(context.Background(), story, true); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// tell tells a whole story without the pauses, and gives what it says. It goes no further when a command ends in another
// way than it should.
func tell(t *testing.T, story string) string {
	t.Helper()
	if err := cluster.LookAt("bin/fairlead", "bin/localkube", "bin/localkube-istiod", "docs/samples", "README.md"); err != nil {
		t.Fatal(err)
	}
	demo := exec.CommandContext(t.Context(), os.Args[0])
	demo.Env = append(os.Environ(), storyVariable+"="+story)
	output, err := demo.CombinedOutput()
	t.Cleanup(func() {
		if t.Failed() {
			harness.KeepLog(t, "demo", string(output))
		}
	})
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		t.Fatalf("%v\n%s", err, strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
	return string(output)
}

// says fails the test unless each line is there, wherever it was broken.
func says(t *testing.T, output string, lines ...string) {
	t.Helper()
	reported := strings.Join(strings.Fields(output), " ")
	for _, line := range lines {
		if !strings.Contains(reported, line) {
			t.Errorf("nowhere does it say %q", line)
		}
	}
}

// isInReadme fails the test unless the demo printed what the README shows under a heading.
func isInReadme(t *testing.T, output, heading string) {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := pages.Read(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := readme.Section(heading)
	if len(section) == 0 {
		t.Errorf("README.md has no commands under %q", heading)
	}
	reported := pages.Commands(output)
	for _, shown := range section {
		var printed [][]string
		for _, c := range reported {
			if pages.Match([]string{shown.Text}, []string{c.Text}) {
				printed = append(printed, c.Shown)
			}
		}
		if !slices.ContainsFunc(printed, shown.Matches) {
			t.Errorf("README.md:%d: $ %s\nthe README shows\n%s\nthe demo prints\n%s",
				shown.Line, shown.Text, strings.Join(shown.Shown, "\n"), strings.Join(slices.Concat(printed...), "\n"))
		}
	}
}

// TestReadmeTimeouts: the commands in the README are those that the demo types on two quiet cores.
func TestReadmeTimeouts(t *testing.T) {
	t.Setenv(wait.Variable, "1")
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := pages.Read(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, c := range readme.Commands {
		if _, timeout, has := strings.Cut(c.Text, "--timeout "); has {
			found++
			if want := deadline(); timeout != want {
				t.Errorf("README.md:%d: $ %s\nthe demo waits %s", c.Line, c.Text, want)
			}
		}
	}
	if found == 0 {
		t.Error("no command of the README has a timeout")
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	output := tell(t, "migration")
	isInReadme(t, output, "## What you will see")
	says(t, output,
		"then 24 Deployments in 4 batches of at most 6",
		"Deployment legacy/mainframe: restart failed: Readiness timeout exceeded after 2s",
		"23 of 24 done, 1 failed, batch 4 of 4",
		"workloads to default-v1-26-0: Completed, 24 of 24 done",
	)
	if end := output[strings.LastIndex(output, "get istios"):]; strings.Contains(end, "default-v1-24-0") {
		t.Errorf("the old control plane is still there at the end:\n%s", end)
	}
}

func TestDemoRollout(t *testing.T) {
	t.Parallel()
	output := tell(t, "rollout")
	isInReadme(t, output, "### A stateful service to its next generation")
	says(t, output,
		"no rollout: only balancerdReplicas changed",
		"rollout: generation 2 follows generation 1, because environmentdImageRef changed",
		"Applied: generation 2 serves the current spec",
		"generation 3 becomes active in place of generation 2",
		"Applied: generation 3 serves the current spec",
		"goes back to the spec of generation 3, which serves. Generation 4 is removed.",
		"no rollout: generation 1 serves the current spec",
	)
	if end, _, _ := strings.Cut(output[strings.LastIndex(output, "get mzs"):], "\n\n"); strings.Contains(end, "v26.4.0") {
		t.Errorf("what was aborted is still asked for at the end:\n%s", end)
	}
}

func TestDemoAdoption(t *testing.T) {
	t.Parallel()
	output := tell(t, "adoption")
	isInReadme(t, output, "### What already runs, under central management")
	says(t, output,
		"PropagationPolicy shop/adopted-east in 1 cluster: 4 to take over. No pod restarts.",
		"propagationpolicy.policy.karmada.io/adopted-east: 4 templates written",
		"Deployment shop/cart exists in cluster west already, and is left alone",
		"- spec.template.spec.containers[cart].env[DEBUG]: 1",
		"3 pods of 1 workload restart",
		"1 of them changed when they were taken over; their originals are restored, which may restart pods.",
		"cluster.cluster.karmada.io/west left",
		"No cluster has joined",
	)
	// What east ran before it runs all the time, with as many marks in the end as in the beginning.
	var pods []string
	for _, part := range strings.Split(output, "\n\n") {
		if _, table, found := strings.Cut(part, "\nPOD "); found {
			pods = append(pods, table)
		}
	}
	if len(pods) != 3 || pods[0] != pods[1] || pods[0] != pods[2] || strings.Count(pods[0], "Running") != 5 {
		t.Errorf("pods were replaced: %q", pods)
	}
}

func TestDemoMesh(t *testing.T) {
	t.Parallel()
	output := tell(t, "mesh")
	isInReadme(t, output, "### A mesh from service tags to MeshServices")
	says(t, output,
		"Mesh default from Disabled to Everywhere, seen from zone east: 1 MeshService to make, 0 to remove.",
		"answers from east and west -> east only",
		"2 entries added, 2 for you to look at.",
		"1 of 1 consumer switched",
		"3 of 3 consumers switched",
		"the requested consumers are reverted; 2 consumers stay switched",
		"calls of backend.shop.svc.cluster.local:80 at 100 a second",
		", none failed",
	)
}

package launch

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/wait"
)

// Result is what a command printed and how it ended.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Command runs a command as the administrator of a cluster.
func Command(t testing.TB, c *cluster.Cluster, args ...string) Result {
	t.Helper()
	binary, err := cluster.Binary("fairlead")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline())
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, append(args, "--kubeconfig", c.Kubeconfig())...)
	cmd.Env = environment(t.TempDir())
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

package harness

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// CommandResult is what a command printed and how it ended.
type CommandResult struct {
	Code           int
	Stdout, Stderr string
}

// RunCommand runs bin/fairlead as the administrator of a cluster, and waits until it ends.
func RunCommand(t testing.TB, c *cluster.Cluster, args ...string) CommandResult {
	t.Helper()
	return StartCommand(t, c, args...).Wait()
}

// RunningCommand is a command that has not ended yet, and what it has printed so far.
type RunningCommand struct {
	Stdout, Stderr *Log

	t     testing.TB
	cmd   *exec.Cmd
	end   context.CancelFunc
	ended chan error
}

// StartCommand starts bin/fairlead as the administrator of a cluster. The command ends with the test, if not before.
func StartCommand(t testing.TB, c *cluster.Cluster, args ...string) *RunningCommand {
	t.Helper()
	binary, err := cluster.Binary("fairlead")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	r := &RunningCommand{Stdout: &Log{}, Stderr: &Log{}, t: t, end: end, ended: make(chan error, 1)}
	r.cmd = exec.CommandContext(ctx, binary, append(args, "--kubeconfig", c.Kubeconfig())...)
	r.cmd.Env = Environment(t.TempDir())
	r.cmd.Stdout, r.cmd.Stderr = r.Stdout, r.Stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	return r
}

// Interrupt asks the command to stop, as Ctrl-C does.
func (r *RunningCommand) Interrupt() { _ = r.cmd.Process.Signal(syscall.SIGINT) }

// Wait waits until the command has ended, and kills a command that never does.
func (r *RunningCommand) Wait() CommandResult {
	r.t.Helper()
	defer r.end()
	// Later than the command itself gives up that was told the same deadline: it knows what it waits for.
	late := time.AfterFunc(wait.Deadline()*11/10, r.end)
	defer late.Stop()
	var exit *exec.ExitError
	if err := <-r.ended; err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return CommandResult{r.cmd.ProcessState.ExitCode(), r.Stdout.Since(0), r.Stderr.Since(0)}
}

package launch

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

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
	return Begin(t, c, args...).Wait()
}

// Running is a command that was begun, and what it has printed so far.
type Running struct {
	Stdout, Stderr *Log

	t     testing.TB
	cmd   *exec.Cmd
	end   context.CancelFunc
	ended chan error
}

// Begin starts a command as the administrator of a cluster. It ends with the test, if not before.
func Begin(t testing.TB, c *cluster.Cluster, args ...string) *Running {
	t.Helper()
	binary, err := cluster.Binary("fairlead")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	r := &Running{Stdout: &Log{}, Stderr: &Log{}, t: t, end: end, ended: make(chan error, 1)}
	r.cmd = exec.CommandContext(ctx, binary, append(args, "--kubeconfig", c.Kubeconfig())...)
	r.cmd.Env = environment(t.TempDir())
	r.cmd.Stdout, r.cmd.Stderr = r.Stdout, r.Stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	return r
}

// Interrupt asks the command to stop, as Ctrl-C does.
func (r *Running) Interrupt() { _ = r.cmd.Process.Signal(syscall.SIGINT) }

// Wait is how the command ended. It kills one that never does.
func (r *Running) Wait() Result {
	r.t.Helper()
	defer r.end()
	// Later than the command itself gives up that was told the same deadline: it knows what it waits for.
	late := time.AfterFunc(wait.Deadline()*11/10, r.end)
	defer late.Stop()
	var exit *exec.ExitError
	if err := <-r.ended; err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return Result{r.cmd.ProcessState.ExitCode(), r.Stdout.Since(0), r.Stderr.Since(0)}
}

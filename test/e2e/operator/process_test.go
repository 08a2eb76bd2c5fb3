package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func binary(t testing.TB) string {
	t.Helper()
	path, err := cluster.Binary("fairlead")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// cliResult is what a command printed and how it ended.
type cliResult struct {
	code           int
	stdout, stderr string
}

func fairlead(t testing.TB, args ...string) cliResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline())
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = harness.Environment(t.TempDir()), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cliResult{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// process is a running operator, whose log is in JSON.
type process struct{ *harness.Operator }

func startOperator(t testing.TB, kubeconfig string, args ...string) *process {
	t.Helper()
	args = append([]string{"operator", "--kubeconfig", kubeconfig, "--chart-dir", cluster.Charts(t)}, args...)
	return startOperatorWith(t, harness.Environment(t.TempDir()), args)
}

// startOperatorWith starts one that ends with the test.
func startOperatorWith(t testing.TB, env, args []string) *process {
	t.Helper()
	o, err := harness.StartFairlead(env, args...)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{o}
	p.KeepLogOnFailure(t)
	t.Cleanup(p.Kill)
	return p
}

func (p *process) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.Ended():
		return true
	default:
		return false
	}
}

// stop asks the operator to end, and returns its exit code.
func (p *process) stop(t testing.TB) int {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	return p.exitCode(t)
}

// exitCode waits until the operator has ended.
func (p *process) exitCode(t testing.TB) int {
	t.Helper()
	select {
	case <-p.Ended():
		return p.ExitCode()
	case <-time.After(wait.Deadline()):
		t.Fatalf("the operator has not ended after %s", wait.Deadline())
		return -1
	}
}

// logged waits for a line of the log whose message is msg and that has the given attributes.
func (p *process) logged(t testing.TB, msg string, attributes ...string) map[string]any {
	t.Helper()
	var found map[string]any
	wait.Until(t, func(context.Context) error {
		ended := p.hasEnded() // asked before the log is read, so that nothing comes after
		for _, line := range p.logLines() {
			if line["msg"] == msg && matches(line, attributes) {
				found = line
				return nil
			}
		}
		if ended {
			t.Fatalf("the operator ended with %d before it logged %q", p.ExitCode(), msg)
		}
		return fmt.Errorf("nothing logged with message %q %v", msg, attributes)
	})
	return found
}

func matches(line map[string]any, attributes []string) bool {
	for i := 0; i+1 < len(attributes); i += 2 {
		if line[attributes[i]] != attributes[i+1] {
			return false
		}
	}
	return true
}

func (p *process) ready(t testing.TB) {
	t.Helper()
	p.logged(t, "ready")
}

func (p *process) leading(t testing.TB) {
	t.Helper()
	p.logged(t, "leading")
}

// address of one of the operator's servers.
func (p *process) address(t testing.TB, server string) string {
	t.Helper()
	address, _ := p.logged(t, "starting server", "name", server)["addr"].(string)
	return address
}

// logLines are those of the log so far.
func (p *process) logLines() []map[string]any {
	var lines []map[string]any
	for text := range strings.Lines(p.Log.Since(0)) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

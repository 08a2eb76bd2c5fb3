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
	"sync"
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

// environment is that of a user who has nothing but the binary: what the machine has configured must not leak in, save how
// often Go collects garbage and where it reports races.
func environment(home string, extra ...string) []string {
	all := append([]string{"HOME=" + home}, extra...)
	for _, name := range []string{"PATH", "GOGC", "GORACE"} {
		if value, set := os.LookupEnv(name); set {
			all = append(all, name+"="+value)
		}
	}
	return all
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
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(t.TempDir()), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cliResult{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// process is a running operator.
type process struct {
	cmd   *exec.Cmd
	lines *logLines
	ended chan struct{}
}

func startOperator(t testing.TB, kubeconfig string, args ...string) *process {
	t.Helper()
	args = append([]string{"operator", "--kubeconfig", kubeconfig, "--chart-dir", cluster.Charts(t)}, args...)
	return startOperatorWith(t, environment(t.TempDir()), args)
}

// startOperatorWith starts one that ends with the test.
func startOperatorWith(t testing.TB, env, args []string) *process {
	t.Helper()
	p, err := launchOperator(binary(t), env, args)
	if err != nil {
		t.Fatal(err)
	}
	p.keepLogOf(t)
	t.Cleanup(p.kill)
	return p
}

func launchOperator(binary string, env, args []string) (*process, error) {
	p := &process{cmd: exec.Command(binary, args...), lines: &logLines{}, ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = env, p.lines
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

// keepLogOf keeps what the operator logs during a test that fails.
func (p *process) keepLogOf(t testing.TB) {
	began := len(p.lines.String())
	t.Cleanup(func() {
		if t.Failed() {
			harness.KeepLog(t, "operator", p.lines.String()[began:])
		}
	})
}

func (p *process) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
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
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
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
		for _, line := range p.lines.decoded() {
			if line["msg"] == msg && matches(line, attributes) {
				found = line
				return nil
			}
		}
		if ended {
			t.Fatalf("the operator ended with %d before it logged %q", p.cmd.ProcessState.ExitCode(), msg)
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

// logLines is a JSON log that is still being written.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logLines) decoded() []map[string]any {
	var lines []map[string]any
	for text := range strings.Lines(l.String()) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

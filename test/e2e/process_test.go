package e2e_test

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

	"github.com/fairlead/fairlead/test/cluster"
)

// eventually tries until it works; it fails the test with the last error when the time is up.
func eventually(t testing.TB, within time.Duration, try func(context.Context) error) {
	t.Helper()
	if err := attempt(t.Context(), within, try); err != nil {
		t.Fatal(err)
	}
}

func attempt(ctx context.Context, within time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var missing error
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		// One that was cut off by the deadline does not say what was missing.
		if ctx.Err() == nil || missing == nil {
			missing = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", within, missing)
		}
	}
}

func binary(t testing.TB) string {
	t.Helper()
	path, err := cluster.Binary("fairlead")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environment is that of a user who has nothing but the binary: what the machine has configured must not leak in.
func environment(t testing.TB, extra ...string) []string {
	t.Helper()
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, extra...)
}

// cliResult is what a command printed and how it ended.
type cliResult struct {
	code           int
	stdout, stderr string
}

func fairlead(t testing.TB, args ...string) cliResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(t), &stdout, &stderr
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
	return startOperatorWith(t, environment(t), args)
}

func startOperatorWith(t testing.TB, env, args []string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary(t), args...), lines: &logLines{}, ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = env, p.lines
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.signal(t, syscall.SIGKILL)
		<-p.ended
		if t.Failed() {
			t.Logf("log of operator %d:\n%s", p.cmd.Process.Pid, p.lines)
		}
	})
	return p
}

func (p *process) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// stop asks the operator to end, and returns its exit code.
func (p *process) stop(t testing.TB) int {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	return p.exitCode(t, 10*time.Second)
}

func (p *process) exitCode(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("the operator has not ended after %s", within)
		return -1
	}
}

// logged waits for a line of the log whose message is msg and that has the given attributes.
func (p *process) logged(t testing.TB, within time.Duration, msg string, attributes ...string) map[string]any {
	t.Helper()
	var found map[string]any
	eventually(t, within, func(context.Context) error {
		for _, line := range p.lines.decoded() {
			if line["msg"] == msg && matches(line, attributes) {
				found = line
				return nil
			}
		}
		select {
		case <-p.ended:
			t.Fatalf("the operator ended with %d before it logged %q", p.cmd.ProcessState.ExitCode(), msg)
		default:
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
	p.logged(t, time.Minute, "ready")
}

func (p *process) leading(t testing.TB) {
	t.Helper()
	p.logged(t, time.Minute, "leading")
}

// address of one of the operator's servers.
func (p *process) address(t testing.TB, server string) string {
	t.Helper()
	address, _ := p.logged(t, 10*time.Second, "starting server", "name", server)["addr"].(string)
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

package revision_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/test/cluster"
)

// process is a running operator.
type process struct {
	cmd   *exec.Cmd
	log   *log
	ended chan struct{}
}

func run(scratch string, args ...string) (*process, error) {
	binary, err := cluster.Binary("fairlead")
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(binary, args...), log: &log{}, ended: make(chan struct{})}
	// What the machine has configured must not leak in.
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + scratch}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
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

func (p *process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the operator ended with %d:\n%s", p.cmd.ProcessState.ExitCode(), p.log.since(0))
	default:
		return nil
	}
}

// kill ends the operator as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

func (p *process) showTo(t testing.TB) {
	began := p.log.len()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the operator's log in the time of this test:\n%s", p.log.since(began))
		}
	})
}

// log is text that is still being written.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Len()
}

func (l *log) since(offset int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text.Bytes()[offset:])
}

// result is what a command printed and how it ended.
type result struct {
	code           int
	stdout, stderr string
}

// fairlead runs the command line as the administrator of the cluster.
func (w *world) fairlead(t testing.TB, args ...string) result {
	t.Helper()
	binary, err := cluster.Binary("fairlead")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, append(args, "--kubeconfig", w.Kubeconfig())...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Package launch runs bin/fairlead for tests, as its users do: the operator with the permissions that its chart gives
// it, and the commands of its administrator.
package launch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/fairlead/fairlead/test/cluster"
)

// Process is a running operator.
type Process struct {
	Log   *Log
	cmd   *exec.Cmd
	ended chan struct{}
}

// Operator starts one, with a directory to call its home.
func Operator(scratch string, flags ...string) (*Process, error) {
	binary, err := cluster.Binary("fairlead")
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(binary, append([]string{"operator"}, flags...)...), Log: &Log{}, ended: make(chan struct{})}
	p.cmd.Env = environment(scratch)
	p.cmd.Stdout, p.cmd.Stderr = p.Log, p.Log
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

// environment is one into which nothing leaks that the machine has configured.
func environment(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
}

// Alive is an error with the whole log when the operator has ended.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the operator ended with %d:\n%s", p.cmd.ProcessState.ExitCode(), p.Log.Since(0))
	default:
		return nil
	}
}

// Pid of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill ends the operator as a power cut would.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

// ShowTo shows the log of the test's time if the test fails.
func (p *Process) ShowTo(t testing.TB) {
	began := p.Log.Len()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the operator's log in the time of this test:\n%s", p.Log.Since(began))
		}
	})
}

// Log is text that is still being written.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Len is how much there is so far.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Len()
}

// Since is what came after the first so many bytes.
func (l *Log) Since(offset int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text.Bytes()[offset:])
}

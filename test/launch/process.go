// Package launch runs bin/fairlead for tests, as its users do: the operator with the permissions that its chart gives
// it, and the commands of its administrator.
package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/wait"
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

// passedOn are variables of the test that its programs get as well: how often to collect garbage, where to report races.
var passedOn = []string{"PATH", "GOGC", "GORACE"}

// environment is one into which nothing leaks that the machine has configured.
func environment(home string) []string {
	environment := []string{"HOME=" + home}
	for _, name := range passedOn {
		if value, set := os.LookupEnv(name); set {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

// lastLines of the log are enough to see why an operator ended.
const lastLines = 20

// Alive is a permanent error with the end of the log when the operator has ended.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		lines := strings.Split(strings.TrimSpace(p.Log.Since(0)), "\n")
		return wait.Permanent(fmt.Errorf("the operator ended with %d:\n%s", p.cmd.ProcessState.ExitCode(), strings.Join(lines[max(0, len(lines)-lastLines):], "\n")))
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

// ShowTo keeps the log of the test's time if the test fails.
func (p *Process) ShowTo(t testing.TB) {
	began := p.Log.Len()
	t.Cleanup(func() {
		if t.Failed() {
			KeepLog(t, "operator", p.Log.Since(began))
		}
	})
}

// KeepLog writes what a program logged during a test that failed into a file below bin/logs, and tells the test which.
func KeepLog(t testing.TB, program, text string) {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Error(err)
		return
	}
	dir := filepath.Join(root, "bin", "logs", filepath.Base(os.Args[0]))
	name := strings.ReplaceAll(t.Name(), "/", "_")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Error(err)
		return
	}
	file, err := os.CreateTemp(dir, name+"-*."+program+".log")
	if err != nil {
		t.Error(err)
		return
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Error(err)
	}
	t.Logf("log of the %s during this test: %s", program, file.Name())
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

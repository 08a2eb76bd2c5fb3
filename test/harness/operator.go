// Package harness gives tests of behaviour what they share: an operator that runs with the permissions of the chart, the
// commands of its administrator, and objects that are created, changed and waited for.
//
// What needs no operator is in the packages below: cluster, chart, wait, history, and the doubles environmentd and callers.
package harness

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

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// Operator is a running operator.
type Operator struct {
	Log   *Log
	cmd   *exec.Cmd
	ended chan struct{}
}

// StartOperator runs bin/fairlead operator, with scratch as its home directory.
func StartOperator(scratch string, flags ...string) (*Operator, error) {
	binary, err := cluster.Binary("fairlead")
	if err != nil {
		return nil, err
	}
	p := &Operator{cmd: exec.Command(binary, append([]string{"operator"}, flags...)...), Log: &Log{}, ended: make(chan struct{})}
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
func (p *Operator) Alive() error {
	select {
	case <-p.ended:
		lines := strings.Split(strings.TrimSpace(p.Log.Since(0)), "\n")
		return wait.Permanent(fmt.Errorf("the operator ended with %d:\n%s", p.cmd.ProcessState.ExitCode(), strings.Join(lines[max(0, len(lines)-lastLines):], "\n")))
	default:
		return nil
	}
}

// Pid of the process.
func (p *Operator) Pid() int { return p.cmd.Process.Pid }

// Kill ends the operator as a power cut would.
func (p *Operator) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

// KeepLogOnFailure keeps what the operator logs during a test that fails.
func (p *Operator) KeepLogOnFailure(t testing.TB) {
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

// Package harness gives tests of behaviour what they share: an operator that runs with the permissions of the chart, the
// commands of its administrator, and objects that are created, changed and waited for.
//
// What needs no operator is in the packages below: cluster, chart, wait, history, and the doubles environmentd and callers.
package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/latency"
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
	return StartFairlead(Environment(scratch), append([]string{"operator"}, flags...)...)
}

// StartFairlead runs bin/fairlead with the arguments of an operator.
func StartFairlead(environment []string, args ...string) (*Operator, error) {
	binary, err := cluster.Binary("fairlead")
	if err != nil {
		return nil, err
	}
	args, end, err := latency.Through(args)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = environment
	o, err := Start(cmd)
	if err != nil {
		end()
		return nil, err
	}
	go func() {
		<-o.ended
		end()
	}()
	return o, nil
}

// Start runs a command as an operator. At the latest, cluster.Run kills it.
func Start(cmd *exec.Cmd) (*Operator, error) {
	p := &Operator{cmd: cmd, Log: &Log{}, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.Log, p.Log
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	cluster.AtEnd(p.Kill)
	return p, nil
}

// InProcessOperator is an operator of one passage that runs within the test, so that faults can be injected into its
// connection. The CRDs have to be there already.
func InProcessOperator(t testing.TB, passage string) func(context.Context, *rest.Config) error {
	t.Helper()
	options := operator.DefaultOptions()
	options.Passages = []string{passage}
	options.InstallCRDs, options.LeaderElection = false, false
	options.HealthProbeBindAddress, options.MetricsBindAddress = "0", "0"
	options.Charts.Dir = cluster.Charts(t)
	return func(ctx context.Context, config *rest.Config) error {
		return operator.Run(ctx, config, options, logr.Discard())
	}
}

// passedOn are variables of the test that its programs get as well: how often to collect garbage, where to report races.
var passedOn = []string{"PATH", "GOGC", "GORACE"}

// Environment is that of a user who has nothing but the binary: what the machine has configured does not leak in.
func Environment(home string, extra ...string) []string {
	environment := append([]string{"HOME=" + home}, extra...)
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

// Ready is an error while the log, in text, does not say that the operator is ready.
func (p *Operator) Ready() error {
	var notReady error
	if !strings.Contains(p.Log.Since(0), "msg=ready") {
		notReady = errors.New("the operator is not ready")
	}
	return errors.Join(p.Alive(), notReady)
}

// Ended is closed when the operator has ended.
func (p *Operator) Ended() <-chan struct{} { return p.ended }

// ExitCode of an operator that has ended.
func (p *Operator) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Signal sends a signal to the operator.
func (p *Operator) Signal(signal syscall.Signal) error { return p.cmd.Process.Signal(signal) }

// Pid of the process.
func (p *Operator) Pid() int { return p.cmd.Process.Pid }

// Kill ends the operator as a power cut would.
func (p *Operator) Kill() {
	_ = p.Signal(syscall.SIGKILL)
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

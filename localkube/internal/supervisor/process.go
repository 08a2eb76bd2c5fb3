package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// spec says how a process is started.
type spec struct {
	name string
	path string
	args []string
	env  []string
	dir  string // where it works
	log  string
}

// child is one process of the cluster and what became of it.
type child struct {
	spec spec

	mu       sync.Mutex
	record   clusterdir.Record
	cmd      *exec.Cmd
	lifeline *os.File      // its stdin: closed when we are gone, whatever took us
	ended    chan struct{} // closed when the process has ended and onChange has returned
	stopping bool
	onChange func()
}

func newChild(s spec, onChange func()) *child {
	return &child{
		spec:     s,
		onChange: onChange,
		record:   clusterdir.Record{Name: s.name, Log: s.log, State: clusterdir.Stopped},
	}
}

func (c *child) Record() clusterdir.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record
}

// start begins the process; a running one is left alone.
func (c *child) start() error {
	if err := c.begin(); err != nil {
		return err
	}
	c.onChange() // which reads the record: not under its lock
	return nil
}

func (c *child) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record.State == clusterdir.Running {
		return nil
	}
	log, err := openLog(c.spec.log)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", c.spec.name, err)
	}
	defer log.Close()
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()

	cmd := exec.Command(c.spec.path, c.spec.args...)
	cmd.Dir, cmd.Env = c.spec.dir, append(environment(), c.spec.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, log, log
	// A group of its own: Ctrl-C in a terminal is for the command that was typed there.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return fmt.Errorf("start %s: %w", c.spec.name, err)
	}
	now := time.Now()
	c.cmd, c.lifeline, c.ended, c.stopping = cmd, ours, make(chan struct{}), false
	c.record = clusterdir.Record{
		Name: c.spec.name, Log: c.spec.log, State: clusterdir.Running,
		PID: int32(cmd.Process.Pid), Created: createdAt(int32(cmd.Process.Pid)), StartedAt: &now,
	}
	go c.wait(cmd, ours, c.ended)
	return nil
}

// environment is what a process needs of ours. The rest stays here: a proxy
// would take the API server's calls to Services away from us, and what is meant
// for another etcd or Istio would change this one.
func environment() []string {
	var kept []string
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "TZ", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT"} {
		if value, ok := os.LookupEnv(name); ok {
			kept = append(kept, name+"="+value)
		}
	}
	return kept
}

func (c *child) wait(cmd *exec.Cmd, lifeline *os.File, ended chan struct{}) {
	err := cmd.Wait()
	_ = lifeline.Close()

	c.mu.Lock()
	now := time.Now()
	c.record.State, c.record.EndedAt = clusterdir.Dead, &now
	c.record.Detail = howItEnded(err)
	if c.stopping {
		c.record.State, c.record.Detail = clusterdir.Stopped, ""
	}
	c.mu.Unlock()
	c.onChange()
	close(ended)
}

// stop asks the process to end, and insists when it does not within the grace. When it returns, the end is recorded.
func (c *child) stop(grace time.Duration) {
	c.mu.Lock()
	if c.record.State != clusterdir.Running {
		c.record.State, c.record.Detail = clusterdir.Stopped, ""
		ended := c.ended
		c.mu.Unlock()
		if ended != nil {
			<-ended // The end may be being recorded.
		}
		return
	}
	c.stopping = true
	process, ended := c.cmd.Process, c.ended
	c.mu.Unlock()

	_ = process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(grace):
		_ = process.Kill()
		<-ended
	}
}

func (c *child) whenEnded() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *child) alive() bool { return c.Record().State == clusterdir.Running }

func isDown(c *child) bool { return !c.alive() }

// stopTogether stops children side by side.
func stopTogether(grace time.Duration, children []*child) {
	var all sync.WaitGroup
	for _, c := range children {
		all.Go(func() { c.stop(grace) })
	}
	all.Wait()
}

// howItEnded says in words what the operating system says in numbers.
func howItEnded(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err == nil {
			return "exited with code 0"
		}
		return err.Error()
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("killed by signal %d (%s)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("exited with code %d", exit.ExitCode())
}

// A log past this size is put aside at the next start, once.
const logLimit = 64 << 20

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

func TestHowItEnded(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"well":             {"exit 0", "exited with code 0"},
		"with a code":      {"exit 3", "exited with code 3"},
		"killed":           {"kill -KILL $$", "killed by signal 9 (killed)"},
		"asked to end":     {"kill -TERM $$", "killed by signal 15 (terminated)"},
		"out of its own":   {"kill -ABRT $$", "killed by signal 6 (aborted)"},
		"code like signal": {"exit 137", "exited with code 137"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := howItEnded(exec.Command("sh", "-c", test.script).Run()); got != test.want {
				t.Errorf("ended as %q, want %q", got, test.want)
			}
		})
	}
	if got := howItEnded(exec.Command("/nowhere/at-all").Run()); !strings.Contains(got, "no such file") {
		t.Errorf("what could not be started ended as %q", got)
	}
}

func TestChildThatIsKilled(t *testing.T) {
	c, changes := startChild(t, "exec sleep 60")
	first := c.Record()
	if first.State != clusterdir.Running || first.PID == 0 || first.Created == 0 || first.StartedAt == nil {
		t.Fatalf("started as %+v", first)
	}
	if err := c.start(); err != nil || c.Record().PID != first.PID {
		t.Errorf("a running one was started again: %v", err)
	}
	kill(t, first.PID, syscall.SIGKILL)
	<-c.ended
	dead := c.Record()
	if dead.State != clusterdir.Dead || dead.Detail != "killed by signal 9 (killed)" || dead.EndedAt == nil {
		t.Errorf("killed as %+v", dead)
	}
	waitUntil(t, "the change is told", func() bool { return changes.Load() >= 2 })

	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	if healed := c.Record(); healed.State != clusterdir.Running || healed.PID == first.PID || healed.Detail != "" || healed.EndedAt != nil {
		t.Errorf("started again as %+v", healed)
	}
}

func TestChildThatIsStopped(t *testing.T) {
	for name, script := range map[string]string{
		"does as it is asked": "exec sleep 60",
		"will not end":        "trap '' TERM; echo deaf; while :; do sleep 0.05; done",
		"has died before":     "kill -KILL $$",
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := startChild(t, script)
			pid := c.Record().PID
			if name == "has died before" {
				<-c.ended
			}
			if name == "will not end" {
				waitUntil(t, "it does not listen any more", func() bool {
					said, err := os.ReadFile(c.spec.log)
					return err == nil && strings.Contains(string(said), "deaf")
				})
			}
			c.stop(300 * time.Millisecond)
			if r := c.Record(); r.State != clusterdir.Stopped || r.Detail != "" {
				t.Errorf("stopped as %+v", r)
			}
			if Alive(pid) {
				t.Errorf("process %d is left", pid)
			}
		})
	}
}

// What records the end of a process has done so when the process counts as stopped: the directory may be deleted then.
func TestEndIsRecordedBeforeStopReturns(t *testing.T) {
	for name, end := range map[string]func(*child){
		"stopped": func(*child) {},
		"ended a moment before": func(c *child) {
			kill(t, c.Record().PID, syscall.SIGKILL)
			waitUntil(t, "it has ended", func() bool { return isDown(c) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			stopped := make(chan struct{})
			var c *child
			c = newChild(spec{name: "test", path: "/bin/sh", args: []string{"-c", "exec sleep 60"}, log: filepath.Join(t.TempDir(), "test.log")}, func() {
				if c.alive() {
					return
				}
				select {
				case <-stopped:
					t.Error("stop has returned, and the end is not recorded")
				case <-time.After(100 * time.Millisecond): // as long as a disk may take
				}
			})
			if err := c.start(); err != nil {
				t.Fatal(err)
			}
			end(c)
			c.stop(time.Minute)
			close(stopped)
			<-c.whenEnded()
		})
	}
}

// A process learns from its standard input that the supervisor is gone.
func TestLifeline(t *testing.T) {
	c, _ := startChild(t, "cat; exit 5")
	closed := time.Now()
	if err := c.lifeline.Close(); err != nil { // as the system does when the supervisor is killed
		t.Fatal(err)
	}
	<-c.ended
	if r := c.Record(); r.Detail != "exited with code 5" || r.EndedAt.Before(closed) {
		t.Errorf("ended as %q at %s, want it after %s", r.Detail, r.EndedAt, closed)
	}
}

func TestChildSeesLittleOfOurEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://192.0.2.1:3128")
	t.Setenv("ETCD_NAME", "another")
	t.Setenv("GOGC", "80")
	c, _ := startChild(t, "env", "REVISION=a")
	<-c.ended
	output, err := os.ReadFile(c.spec.log)
	if err != nil {
		t.Fatal(err)
	}
	for variable, want := range map[string]bool{"HTTPS_PROXY=": false, "ETCD_NAME=": false, "GOGC=80": true, "REVISION=a": true, "PATH=": true} {
		if got := strings.Contains(string(output), variable); got != want {
			t.Errorf("sees %s: %t, want %t", variable, got, want)
		}
	}
}

func TestChildThatCannotStart(t *testing.T) {
	c := newChild(spec{name: "etcd", path: "/nowhere/at-all", log: filepath.Join(t.TempDir(), "etcd.log")}, func() {})
	if err := c.start(); err == nil || !strings.Contains(err.Error(), "start etcd") {
		t.Errorf("error is %v, want one that names etcd", err)
	}
	if c.alive() {
		t.Error("is said to live")
	}
}

func TestLongLogIsPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "etcd.log")
	write := func(text string) {
		log, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		if _, err := log.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	write("second\n")
	if got := lastLines(path, 5); got != "  first\n  second" {
		t.Errorf("log is %q, want both", got)
	}
	if err := os.Truncate(path, logLimit+1); err != nil {
		t.Fatal(err)
	}
	write("third\n")
	if got := lastLines(path, 5); got != "  third" {
		t.Errorf("log is %q, want a new one", got)
	}
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != logLimit+1 {
		t.Errorf("the old one is not kept: %v", err)
	}
}

func TestLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for name, test := range map[string]struct{ content, want string }{
		"fewer than asked":  {"a\nb\n", "  a\n  b"},
		"more than asked":   {"a\nb\nc\nd\n", "  b\n  c\n  d"},
		"no newline at end": {"a\nb", "  a\n  b"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := lastLines(path, 3); got != test.want {
				t.Errorf("lines are %q, want %q", got, test.want)
			}
		})
	}
	if got := lastLines(path+".none", 3); !strings.Contains(got, "no such file") {
		t.Errorf("of no log: %q", got)
	}
}

func startChild(t *testing.T, script string, env ...string) (*child, *atomic.Int32) {
	t.Helper()
	var changes atomic.Int32
	c := newChild(spec{
		name: "test", path: "/bin/sh", args: []string{"-c", script}, env: env, log: filepath.Join(t.TempDir(), "test.log"),
	}, func() { changes.Add(1) })
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.stop(0) })
	return c, &changes
}

func kill(t *testing.T, pid int32, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(int(pid), signal); err != nil {
		t.Fatal(err)
	}
}

func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patient(never)); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

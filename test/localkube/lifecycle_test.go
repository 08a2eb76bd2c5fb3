//go:build linux

package localkube_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// One directory through its life. A hub will do, and is up sooner.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	config := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := portOf(listener.Addr().String())
	t.Run("a port that is taken is refused", func(t *testing.T) {
		r := localkube(t, upArgs(dir, "--profile", "hub", "--port", taken)...)
		if r.code != 1 || !strings.Contains(r.stderr, "port "+taken+" on 127.0.0.1 is taken") || !strings.Contains(r.stderr, "--port 0") {
			t.Errorf("up: %s", r)
		}
		noProcesses(t, dir)
	})

	t.Run("two start it at once on another port, and there is one", func(t *testing.T) {
		var both sync.WaitGroup
		var results [2]result
		for i := range results {
			cmd := command(t, upArgs(dir, "--profile", "hub", "--port", "0")...)
			both.Go(func() { results[i] = runCommand(t, cmd) })
		}
		both.Wait()
		var reported int
		for _, r := range results {
			if r.code != 0 {
				t.Errorf("up: %s", r)
			}
			reported += strings.Count(r.stdout, "already running")
		}
		if reported != 1 {
			t.Errorf("%d were told that it runs already, want one: %s%s", reported, results[0], results[1])
		}
		s, code := statusOf(t, dir)
		if code != 0 || len(processesOf(t, dir)) != len(s.Components) {
			t.Errorf("status is %+v, and processes are %v", s, processesOf(t, dir))
		}
		if host := configOf(t, dir).Host; portOf(host) == taken {
			t.Errorf("it runs on %s, which is taken", host)
		}
	})
	createConfigMap(t, clientOf(t, configOf(t, dir)), metav1.NamespaceDefault, configMap("note"))
	first := config()

	t.Run("up on a running one says so", func(t *testing.T) {
		before, _ := statusOf(t, dir)
		r := up(t, dir)
		if want := "already running: " + filepath.Join(dir, "kubeconfig") + "\n"; r.stdout != want {
			t.Errorf("up says %q, want %q", r.stdout, want)
		}
		after, _ := statusOf(t, dir)
		for name, pid := range before.pids() {
			if after.pids()[name] != pid {
				t.Errorf("%s was started again", name)
			}
		}
	})

	t.Run("up otherwise than it runs is refused", func(t *testing.T) {
		if r := localkube(t, upArgs(dir, "--port", taken)...); r.code != 1 || !strings.Contains(r.stderr, "before it moves to "+taken) {
			t.Errorf("up on another port: %s", r)
		}
		if r := localkube(t, upArgs(dir, "--profile", "cluster")...); r.code != 1 || !strings.Contains(r.stderr, "holds a hub, not a cluster") {
			t.Errorf("up as a cluster: %s", r)
		}
		if _, code := statusOf(t, dir); code != 0 {
			t.Errorf("it suffered: exit code of status is %d", code)
		}
	})

	t.Run("kubectl is interrupted like kubectl", func(t *testing.T) {
		cmd := command(t, "kubectl", "--kubeconfig", filepath.Join(dir, "kubeconfig"), "get", "configmaps", "--watch")
		watched, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(watched)
		if !lines.Scan() {
			t.Fatalf("watch shows nothing: %v", lines.Err())
		}
		kill(t, cmd.Process.Pid, syscall.SIGINT)
		for lines.Scan() { // until it has ended
		}
		// Once it watches, kubectl takes the signal itself, and ends with 1.
		_ = cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGINT && status.ExitStatus() != 1 {
			t.Errorf("ended otherwise: %s", cmd.ProcessState)
		}
	})

	t.Run("down and up keep data, address and what is served", func(t *testing.T) {
		succeed(t, "serve", "--dir", dir, "--service", "shop/hook:443", "--to", "127.0.0.1:9443")
		before := configOf(t, dir)
		r := succeed(t, "down", "--dir", dir)
		if !strings.Contains(r.stdout, "stopped: "+dir) {
			t.Errorf("down: %s", r)
		}
		stopped := localkube(t, "status", "--dir", dir)
		if stopped.code != 1 || !strings.Contains(stopped.stdout, ": stopped\n") || !strings.Contains(stopped.stderr, "not running: `localkube up --dir "+dir+"`") {
			t.Errorf("status of a stopped one: %s", stopped)
		}
		again := succeed(t, "down", "--dir", dir)
		if !strings.Contains(again.stdout, "nothing to stop") {
			t.Errorf("down again: %s", again)
		}
		up(t, dir)
		if config() != first && !listens(before.Host) {
			t.Error("the kubeconfig has changed, so that copies of it are stale")
		}
		isKept(t, clientOf(t, configOf(t, dir)), metav1.NamespaceDefault, "note")
		s, _ := statusOf(t, dir)
		if len(s.Serves) != 1 || s.Serves[0].Service != "hook" || s.Serves[0].To != "127.0.0.1:9443" {
			t.Errorf("served is %+v, want what was before", s.Serves)
		}
	})

	t.Run("down ends one that hangs", func(t *testing.T) {
		before, _ := statusOf(t, dir)
		kill(t, before.component(t, "localkube").PID, syscall.SIGSTOP)
		kill(t, before.component(t, "etcd").PID, syscall.SIGSTOP)
		succeed(t, "down", "--dir", dir)
		noProcesses(t, dir)
	})

	t.Run("a pid that is used again is nobody of ours, and a terminal shows progress", func(t *testing.T) {
		stranger := bystander(t)
		records, err := json.Marshal([]map[string]any{
			{"name": "localkube", "pid": stranger.Process.Pid, "created": 1, "state": "running", "log": "none"},
			{"name": "etcd", "pid": stranger.Process.Pid, "created": 1, "state": "running", "log": "none"},
		})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "processes.json"), string(records))
		succeed(t, "down", "--dir", dir)
		write(t, filepath.Join(dir, "processes.json"), string(records))
		waiting := regexp.MustCompile(` waiting for the API server \d+\.\ds`) // with the time it takes
		unlock := lockFile(t, filepath.Join(dir, "etcd", "member", "snap", "db"))
		shown := onTerminal(t, command(t, upArgs(dir)...), func(shown string) {
			if waiting.MatchString(shown) {
				unlock()
			}
		})
		if !lives(stranger) {
			t.Error("a process of somebody else was killed")
		}
		for _, want := range []string{"✓\x1b[0m kube-apiserver started\r\n", "✓\x1b[0m ready in "} {
			if !strings.Contains(shown, want) {
				t.Errorf("the terminal does not show %q:\n%q", want, shown)
			}
		}
		isKept(t, clientOf(t, configOf(t, dir)), metav1.NamespaceDefault, "note")
	})

	t.Run("what cannot be read of its processes is no hindrance", func(t *testing.T) {
		succeed(t, "down", "--dir", dir)
		noProcesses(t, dir) // none that still writes there itself
		write(t, filepath.Join(dir, "processes.json"), "{")
		succeed(t, "down", "--dir", dir)
	})

	t.Run("delete leaves what is not its own", func(t *testing.T) {
		notes := filepath.Join(dir, "notes.txt")
		if err := os.WriteFile(notes, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := succeed(t, "down", "--dir", dir, "--delete")
		if !strings.Contains(r.stdout, "deleted: "+dir) {
			t.Errorf("down --delete: %s", r)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != "notes.txt" {
			t.Errorf("left are %v, %v, want notes.txt alone", entries, err)
		}
		if r := localkube(t, "status", "--dir", dir); r.code != 1 || !strings.Contains(r.stderr, "no cluster was ever started") {
			t.Errorf("status of a deleted one: %s", r)
		}
	})
}

func TestNeverStarted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"down":          {args: []string{"down", "--dir", dir}, says: "nothing to stop: no cluster was ever started in " + dir},
		"down --delete": {args: []string{"down", "--dir", dir, "--delete"}, says: "nothing to stop"},
		"status":        {args: []string{"status", "--dir", dir}, code: 1, says: "`localkube up --dir " + dir + "` starts one"},
		"status -o":     {args: []string{"status", "--dir", dir, "-o", "json"}, code: 1, says: "no cluster was ever started in " + dir},
		"serve":         {args: []string{"serve", "--dir", dir, "--service", "a/b:443", "--to", "127.0.0.1:9443"}, code: 1, says: "`localkube up --dir " + dir + "` starts it"},
		"istiod":        {args: []string{"istiod", "--dir", dir, "--revision", "a"}, code: 1, says: "`localkube up --dir " + dir + "` starts it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := localkube(t, test.args...)
			if r.code != test.code || !strings.Contains(r.stdout+r.stderr, test.says) {
				t.Errorf("%s\nwant exit code %d and %q", r, test.code, test.says)
			}
		})
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory was made: %v", err)
	}
}

// Whoever interrupts a start finds nothing left of it. The start does not come to its end before: etcd waits for its file.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(t *testing.T, dir string, up int){
		"by Ctrl-C": func(t *testing.T, _ string, up int) { kill(t, up, syscall.SIGINT) },
		"by down":   func(t *testing.T, dir string, _ int) { succeed(t, "down", "--dir", dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			db := filepath.Join(dir, "etcd", "member", "snap", "db")
			write(t, db, "")
			lockFile(t, db)
			cmd := command(t, upArgs(dir)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			steps, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for lines := bufio.NewScanner(steps); lines.Scan(); {
				if lines.Text() == "kube-apiserver started" {
					interrupt(t, dir, cmd.Process.Pid)
				}
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 1 || stderr.Len() == 0 {
				t.Errorf("up ended with exit code %d: %s", code, &stderr)
			}
			noProcesses(t, dir)
			if r := localkube(t, "status", "--dir", dir); r.code != 1 || !strings.Contains(r.stdout, ": stopped\n") {
				t.Errorf("status: %s", r)
			}
		})
	}
}

// lockFile keeps a file from others until it is unlocked, or the test ends.
func lockFile(t *testing.T, path string) (unlock func()) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() { _ = file.Close() })
	t.Cleanup(unlock)
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return unlock
}

// kubectl must not take localkube's commands for its plugins.
func TestKubectlPluginsAreLeftAlone(t *testing.T) {
	t.Parallel()
	plugins := t.TempDir()
	script := "#!/bin/sh\necho the plugin was run\n"
	for _, name := range []string{"status", "greet"} {
		if err := os.WriteFile(filepath.Join(plugins, "kubectl-"+name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	with := func(args ...string) result {
		cmd := command(t, args...)
		cmd.Env = append(os.Environ(), "PATH="+plugins+":"+os.Getenv("PATH"))
		return runCommand(t, cmd)
	}
	if r := with("status", "--dir", t.TempDir()); r.code != 1 || !strings.Contains(r.stderr, "no cluster was ever started") {
		t.Errorf("localkube status: %s", r)
	}
	if r := with("kubectl", "greet"); r.code != 0 || r.stdout != "the plugin was run\n" {
		t.Errorf("localkube kubectl greet: %s", r)
	}
}

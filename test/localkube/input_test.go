//go:build linux

package localkube_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// What was typed wrongly is refused with exit code 2, and nothing is made.
func TestUsage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"up without --dir":         {[]string{"up"}, "--dir is required"},
		"down without --dir":       {[]string{"down"}, "--dir is required"},
		"status without --dir":     {[]string{"status"}, "--dir is required"},
		"serve without --dir":      {[]string{"serve", "--service", "a/b:443", "--to", "127.0.0.1:1"}, "--dir is required"},
		"istiod without --dir":     {[]string{"istiod", "--revision", "a"}, "--dir is required"},
		"charts without --dir":     {[]string{"charts"}, "--dir is required"},
		"unknown profile":          {[]string{"up", "--dir", dir, "--profile", "spoke"}, `unknown --profile "spoke": it is cluster or hub`},
		"nodes in a hub":           {[]string{"up", "--dir", dir, "--profile", "hub", "--nodes", "2"}, "a hub has no --nodes"},
		"negative nodes":           {[]string{"up", "--dir", dir, "--nodes", "-1"}, "--nodes must not be negative"},
		"no number of nodes":       {[]string{"up", "--dir", dir, "--nodes", "many"}, "--nodes"},
		"impossible port":          {[]string{"up", "--dir", dir, "--port", "70000"}, "--port must be between 0 and 65535"},
		"started for nobody":       {[]string{"up", "--dir", dir, "--until-exit-of", "2147483647"}, "there is no such process"},
		"an argument too many":     {[]string{"up", "--dir", dir, "now"}, `unknown argument "now"`},
		"unknown command":          {[]string{"launch"}, `unknown argument "launch"`},
		"unknown flag":             {[]string{"up", "--dir", dir, "--fast"}, "unknown flag: --fast"},
		"unknown output":           {[]string{"status", "--dir", dir, "-o", "yaml"}, `unknown --output "yaml"`},
		"no Service":               {[]string{"serve", "--dir", dir, "--to", "127.0.0.1:9443"}, "--service must be NS/NAME:PORT"},
		"a Service without a port": {[]string{"serve", "--dir", dir, "--service", "shop/hook", "--to", "127.0.0.1:9443"}, "--service must be NS/NAME:PORT"},
		"no process":               {[]string{"serve", "--dir", dir, "--service", "shop/hook:443"}, "--to must be 127.0.0.1:PORT"},
		"a process elsewhere":      {[]string{"serve", "--dir", dir, "--service", "shop/hook:443", "--to", "10.0.0.1:443"}, "--to must be 127.0.0.1:PORT"},
		"no revision":              {[]string{"istiod", "--dir", dir}, "--revision is required"},
		"a path as revision":       {[]string{"istiod", "--dir", dir, "--revision", "../a"}, "--revision must be the name of a revision"},
		"no time to wait":          {[]string{"istiod", "--dir", dir, "--revision", "a", "--wait", "long"}, "--wait"},
	} {
		t.Run(name, func(t *testing.T) {
			r := localkube(t, test.args...)
			if r.code != 2 || r.stdout != "" || !strings.HasPrefix(r.stderr, "error: ") || !strings.Contains(r.stderr, test.says) {
				t.Errorf("%s\nwant exit code 2 and %q", r, test.says)
			}
		})
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory was made: %v", err)
	}
}

// What cannot be done is refused with exit code 1 and what to do, and leaves
// nothing running.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string) // what is there before
		args    []string                       // --dir is added
		says    []string
	}{
		"a file in the place of DIR": {
			prepare: func(t *testing.T, dir string) { write(t, dir, "") },
			args:    []string{"up"}, says: []string{"cannot use --dir", "choose a directory that you may write to"},
		},
		"DIR that may not be written": {
			prepare: func(t *testing.T, dir string) {
				if os.Getuid() == 0 {
					t.Skip("root may write anywhere")
				}
				if err := os.MkdirAll(dir, 0o500); err != nil {
					t.Fatal(err)
				}
			},
			args: []string{"up"}, says: []string{"--dir", "permission denied", "choose a directory that you may write to"},
		},
		"another profile than before": {
			prepare: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "localkube.json"), `{"profile": "hub"}`) },
			args:    []string{"up", "--profile", "cluster"}, says: []string{"holds a hub, not a cluster", "use another --dir"},
		},
		"damaged settings, up": {
			prepare: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "localkube.json"), `{"profile":`) },
			args:    []string{"up"}, says: []string{"localkube.json", "--delete` starts afresh"},
		},
		"damaged settings, status": {
			prepare: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "localkube.json"), `{"profile": "production"}`)
			},
			args: []string{"status"}, says: []string{"localkube.json", "--delete` starts afresh"},
		},
		"damaged certificate": {
			prepare: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "pki", "ca.crt"), "nonsense") },
			args:    []string{"up"}, says: []string{"ca.crt is damaged", "--delete` starts afresh"},
		},
		"a component that dies while it starts": {
			prepare: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "etcd", "member"), "no directory") },
			args:    []string{"up"}, says: []string{"etcd died while starting: exited with code 1", "the last lines of", "logs/etcd.log:", "not a directory"},
		},
		"DIR where nothing can be made": {
			prepare: func(t *testing.T, dir string) {
				if err := os.Symlink("/proc", dir); err != nil {
					t.Fatal(err)
				}
			},
			args: []string{"up"}, says: []string{"cannot use --dir", "choose a directory that you may write to"},
		},
		"charts into a file": {
			prepare: func(t *testing.T, dir string) { write(t, dir, "") },
			args:    []string{"charts"}, says: []string{"charts of Istio v1.24.0", "not a directory"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cluster")
			test.prepare(t, dir)
			r := localkube(t, append(test.args, "--dir", dir)...)
			if r.code != 1 {
				t.Errorf("%s\nwant exit code 1", r)
			}
			for _, part := range test.says {
				if !strings.Contains(r.stderr, part) {
					t.Errorf("%s\nwant it to say %q", r, part)
				}
			}
			noProcesses(t, dir)
		})
	}
}

// The remedies that messages name do help.
func TestDamagedSettingsAreDeleted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	write(t, filepath.Join(dir, "localkube.json"), "{")
	write(t, filepath.Join(dir, "processes.json"), "{")
	succeed(t, "down", "--dir", dir, "--delete")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestMissingTools(t *testing.T) {
	t.Parallel()
	t.Run("go, for the charts", func(t *testing.T) {
		cmd := command(t, "charts", "--dir", t.TempDir())
		cmd.Env = []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir()}
		if r := runCommand(t, cmd); r.code != 1 || !strings.Contains(r.stderr, "the go command is needed") {
			t.Errorf("charts: %s", r)
		}
	})
	t.Run("istiod, beside localkube", func(t *testing.T) {
		alone := filepath.Join(t.TempDir(), "localkube")
		copyBinary(t, alone)
		cmd := command(t, "istiod", "--dir", t.TempDir(), "--revision", "a")
		cmd.Path = alone
		if r := runCommand(t, cmd); r.code != 1 || !strings.Contains(r.stderr, "localkube-istiod is not there: `make localkube` builds it") {
			t.Errorf("istiod: %s", r)
		}
	})
}

// copyBinary has another process write the copy: a program cannot be run while it is open for writing, and a command that a
// parallel test starts has the files of this process open, too, until it has become that command.
func copyBinary(t *testing.T, to string) {
	t.Helper()
	path, err := cluster.Binary("localkube")
	if err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("cp", path, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v: %s", path, err, output)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

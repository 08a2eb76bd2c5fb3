package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

func TestIsOurs(t *testing.T) {
	dir := newDir(t)
	ours := follower(t, dir)
	tests := map[string]struct {
		change func(*clusterdir.Record)
		dir    clusterdir.Dir
		want   bool
	}{
		"as it was recorded":        {want: true},
		"born when the clock moved": {change: func(r *clusterdir.Record) { r.Created += 500 }, want: true},
		"born at another time":      {change: func(r *clusterdir.Record) { r.Created -= 60_000 }},
		"another process":           {change: func(r *clusterdir.Record) { r.PID = int32(os.Getpid()); r.Created = createdAt(r.PID) }},
		"no process":                {change: func(r *clusterdir.Record) { r.PID = 0 }},
		"known to have stopped":     {change: func(r *clusterdir.Record) { r.State = clusterdir.Stopped }},
		"of another directory":      {dir: newDir(t)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			record := ours
			if test.change != nil {
				test.change(&record)
			}
			of := dir
			if test.dir != "" {
				of = test.dir
			}
			if got := isOurs(of, record); got != test.want {
				t.Errorf("is ours: %t, want %t", got, test.want)
			}
		})
	}
}

func TestEndLeftovers(t *testing.T) {
	dir := newDir(t)
	ours := follower(t, dir)
	strange := follower(t, newDir(t)) // the pid of a process of ours, used again
	strange.Name = "kube-apiserver"
	if err := dir.SaveRecords([]clusterdir.Record{ours, strange}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	EndLeftovers(dir, 200*time.Millisecond)
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("took %s, want the grace at least", took)
	}
	waitUntil(t, "what was left of the cluster is gone", func() bool { return !isOurs(dir, ours) })
	if !Alive(strange.PID) {
		t.Error("a process of somebody else was ended")
	}
}

// A supervisor that had to be ended does not write that it was asked to.
func TestStopIsRecorded(t *testing.T) {
	dir := newDir(t)
	t.Chdir(string(dir)) // as the client does, and back when the test ends
	ended := clusterdir.Record{Name: Self, PID: 1, State: clusterdir.Running}
	dead := clusterdir.Record{Name: "etcd", State: clusterdir.Dead, Detail: "killed"}
	if err := dir.SaveRecords([]clusterdir.Record{ended, dead}); err != nil {
		t.Fatal(err)
	}
	if err := NewClient(dir).Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	records, err := dir.LoadRecords()
	if err != nil || len(records) != 2 {
		t.Fatalf("records are %+v, %v", records, err)
	}
	for _, r := range records {
		if r.State != clusterdir.Stopped || r.Detail != "" {
			t.Errorf("recorded is %+v, want it stopped", r)
		}
	}
}

func TestEndLeftoversOfUnreadableRecords(t *testing.T) {
	dir := newDir(t)
	if err := os.WriteFile(filepath.Join(string(dir), "processes.json"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	EndLeftovers(dir, time.Second)
	killIfOurs(dir, Self)
}

func TestAlive(t *testing.T) {
	if !Alive(int32(os.Getpid())) {
		t.Error("this process is not alive")
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if Alive(int32(ended.Process.Pid)) {
		t.Error("a process that has ended is alive")
	}
	unnoticed := exec.Command("true")
	if err := unnoticed.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unnoticed.Wait() })
	waitUntil(t, "a process whose end nobody noticed counts as ended", func() bool { return !Alive(int32(unnoticed.Process.Pid)) })
}

func newDir(t *testing.T) clusterdir.Dir {
	t.Helper()
	dir := clusterdir.Dir(t.TempDir())
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := dir.SaveSettings(clusterdir.Settings{Profile: clusterdir.Cluster}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// follower is the record of a process that has a file of the directory among its arguments.
func follower(t *testing.T, dir clusterdir.Dir) clusterdir.Record {
	t.Helper()
	log := dir.Log("etcd")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tail", "-f", log)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pid := int32(cmd.Process.Pid)
	waitUntil(t, "its arguments can be read", func() bool {
		running, err := process.NewProcess(pid)
		if err != nil {
			return false
		}
		args, err := running.CmdlineSlice()
		return err == nil && slices.Contains(args, log)
	})
	return clusterdir.Record{Name: "etcd", PID: pid, Created: createdAt(pid), State: clusterdir.Running}
}

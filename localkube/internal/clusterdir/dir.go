// Package clusterdir knows what lies where in the directory of one cluster.
package clusterdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// Dir is the absolute path of a cluster's directory.
type Dir string

// At makes a Dir of a path as a user wrote it.
func At(path string) (Dir, error) {
	if path == "" {
		return "", errors.New("--dir is required: the directory that holds the cluster")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolve --dir %s: %w", path, err)
	}
	return Dir(abs), nil
}

func (d Dir) String() string { return string(d) }

func (d Dir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// Kubeconfig is the administrator's way in.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// PKI holds the certificate authority, every certificate and the components' kubeconfigs.
func (d Dir) PKI(elem ...string) string { return d.path(append([]string{"pki"}, elem...)...) }

// EtcdData is all that must survive between a stop and a start.
func (d Dir) EtcdData() string { return d.path("etcd") }

// Log is where a component's output goes.
func (d Dir) Log(component string) string { return d.path("logs", component+".log") }

// Work is the working directory of a component that writes files of its own.
func (d Dir) Work(component string) string { return d.path("work", component) }

// Lock is held by the supervisor for as long as it lives.
func (d Dir) Lock() string { return d.path("lock") }

// StartLock is held by whoever starts the cluster, until it is up.
func (d Dir) StartLock() string { return d.path("start.lock") }

func (d Dir) settings() string { return d.path("localkube.json") }
func (d Dir) records() string  { return d.path("processes.json") }

// Sockets are named relative to the directory, and whoever uses them works in
// it: a unix socket's path is limited to about a hundred bytes, a temporary
// directory's is not.
const (
	ControlSocket = "control.sock"
	EgressSocket  = "egress.sock"
)

// Exists tells whether a cluster was ever started here.
func (d Dir) Exists() bool {
	_, err := os.Stat(d.settings())
	return err == nil
}

// Prepare makes the directory tree and proves that it can be written.
func (d Dir) Prepare() error {
	for _, sub := range []string{"", "pki", "etcd", "logs", "work"} {
		if err := os.MkdirAll(d.path(sub), 0o700); err != nil {
			return fmt.Errorf("cannot use --dir %s: %w: choose a directory that you may write to", d, err)
		}
	}
	probe, err := os.CreateTemp(string(d), ".writable-*")
	if err != nil {
		return fmt.Errorf("cannot write to --dir %s: %w: choose a directory that you may write to", d, err)
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}

// interruptedWrite is the name of a temporary file that a process left when it was killed in the middle of a write.
var interruptedWrite = regexp.MustCompile(`^\.(kubeconfig|localkube\.json|processes\.json|writable)-[0-9]+$`)

// Delete removes what localkube made and nothing else; the directory itself
// goes only when that leaves it empty.
func (d Dir) Delete() error {
	own := []string{"kubeconfig", "pki", "etcd", "logs", "work", "lock", "start.lock", "localkube.json", "processes.json", ControlSocket, EgressSocket}
	for _, name := range own {
		if err := os.RemoveAll(d.path(name)); err != nil {
			return fmt.Errorf("delete %s: %w", d.path(name), err)
		}
	}
	left, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", d, err)
	}
	foreign := false
	for _, entry := range left {
		if !interruptedWrite.MatchString(entry.Name()) {
			foreign = true
		} else if err := os.Remove(d.path(entry.Name())); err != nil {
			return fmt.Errorf("delete %s: %w", d.path(entry.Name()), err)
		}
	}
	if foreign {
		return nil
	}
	return os.Remove(string(d))
}

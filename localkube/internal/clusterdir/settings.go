package clusterdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Profile says what a cluster is for.
type Profile string

const (
	// Cluster runs workloads.
	Cluster Profile = "cluster"
	// Hub holds templates; nothing runs in it.
	Hub Profile = "hub"
)

// Settings are what a cluster is, kept from start to start.
type Settings struct {
	Profile Profile `json:"profile"`
	Nodes   int     `json:"nodes"`
	Ports   Ports   `json:"ports"`
	// PinnedPort means that the API port was asked for and is not exchanged for a free one.
	PinnedPort bool     `json:"pinnedPort,omitempty"`
	Serves     []Serve  `json:"serves,omitempty"`
	Istiods    []Istiod `json:"istiods,omitempty"`
}

// Ports are those on 127.0.0.1 that the cluster took at its first start and
// tries to keep, so that copies of its kubeconfig stay good.
type Ports struct {
	API        int `json:"api"`
	EtcdClient int `json:"etcdClient"`
	EtcdPeer   int `json:"etcdPeer"`
}

// Istiod is a control plane to run behind the Service of its revision.
type Istiod struct {
	Revision  string `json:"revision"`
	Namespace string `json:"namespace"`
}

// Record is what is known of a process of the cluster, dead or alive.
type Record struct {
	Name string `json:"name"`
	// PID and Created together name one process: a number alone is used again.
	PID     int32 `json:"pid,omitempty"`
	Created int64 `json:"created,omitempty"`

	State     State      `json:"state"`
	Detail    string     `json:"detail,omitempty"`
	Log       string     `json:"log"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// State of a process.
type State string

const (
	Running State = "running"
	Waiting State = "waiting" // for something in the cluster before it can start
	Dead    State = "dead"    // ended without having been asked to
	Stopped State = "stopped"
)

// LoadSettings reads the settings; a directory that holds no cluster has zero ones.
func (d Dir) LoadSettings() (Settings, error) {
	var s Settings
	if err := d.load(d.settings(), &s); err != nil {
		return s, err
	}
	if s.Profile != "" && s.Profile != Cluster && s.Profile != Hub {
		return s, d.damaged(d.settings(), fmt.Errorf("unknown profile %q", s.Profile))
	}
	return s, nil
}

// SaveSettings writes them whole or not at all.
func (d Dir) SaveSettings(s Settings) error { return save(d.settings(), s) }

// LoadRecords reads what the supervisor last knew of its processes.
func (d Dir) LoadRecords() ([]Record, error) {
	var r []Record
	err := d.load(d.records(), &r)
	return r, err
}

// SaveRecords keeps them for whoever comes after the supervisor.
func (d Dir) SaveRecords(r []Record) error { return save(d.records(), r) }

func (d Dir) load(path string, into any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return d.damaged(path, err)
	}
	return nil
}

func (d Dir) damaged(path string, err error) error {
	return fmt.Errorf("read %s: %w: localkube did not write that; `localkube down --dir %s --delete` starts afresh", path, err, d)
}

func save(path string, from any) error {
	data, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(data, '\n'))
}

// WriteFile replaces a private file atomically.
func WriteFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		_ = tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

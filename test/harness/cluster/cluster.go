// Package cluster gives tests a real Kubernetes, through bin/localkube.
//
// A test binary shares one cluster between its tests: its TestMain calls Run,
// and each test calls Shared and keeps to a Namespace, or a Name, of its
// own.
// With LOCALKUBE_DIR set to the directory of a running cluster, that one is
// used and left running.
package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// DirVariable names the environment variable of a cluster to reuse.
const DirVariable = "LOCALKUBE_DIR"

// Options of a cluster that is started.
type Options struct {
	Profile string // cluster (the default) or hub
	Nodes   int
	// KeepNamespaces leaves it to the end of the cluster to end the namespaces
	// of its tests, for tests that need very many: to delete one takes Kubernetes
	// a hundred requests.
	KeepNamespaces bool
}

// Cluster is a running Kubernetes.
type Cluster struct {
	Dir            string
	config         *rest.Config
	keepNamespaces bool
}

// started are the clusters that tests of this binary share, by the name that these call them.
var started struct {
	mu      sync.Mutex
	options Options // of the one that Shared gives
	all     map[string]*oneStart
}

type oneStart struct {
	once    sync.Once
	cluster *Cluster
	err     error
	dir     string // set when it was started here, and is to be stopped
}

// Run runs a test binary's tests, calls the functions that were given to AtEnd,
// and stops what Shared and Several started. The options are those of the shared
// cluster, unless that is one that is reused.
func Run(m *testing.M, options Options) int {
	ctrl.SetLogger(logr.Discard())
	started.options = options
	code := m.Run()
	ending.mu.Lock()
	defer ending.mu.Unlock()
	for _, end := range slices.Backward(ending.all) {
		end()
	}
	for _, s := range started.all {
		if s.dir == "" {
			continue
		}
		if err := down(s.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		_ = os.RemoveAll(s.dir)
	}
	return code
}

// ending are the functions that Run calls when the tests have ended.
var ending struct {
	mu  sync.Mutex
	all []func()
}

// AtEnd has Run call a function when the tests have ended and before it stops
// the clusters, the last one first.
func AtEnd(end func()) {
	ending.mu.Lock()
	defer ending.mu.Unlock()
	ending.all = append(ending.all, end)
}

// TempDir is a directory that Run removes.
func TempDir(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix+"-")
	if err == nil {
		AtEnd(func() { _ = os.RemoveAll(dir) })
	}
	return dir, err
}

// Parallel lets n tests run side by side, for a TestMain whose tests wait for the
// cluster more than they work. What -parallel says counts more.
func Parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // a number cannot be refused
	}
}

// Shared is the one cluster of this test binary, started on first use.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	c, err := share("", func(s *oneStart) (*Cluster, error) {
		if dir := os.Getenv(DirVariable); dir != "" {
			return open(dir)
		}
		return s.up(started.options)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Several are clusters of this test binary by their names, started side by side on first use, for tests that need more
// than one.
func Several(t testing.TB, options map[string]Options) map[string]*Cluster {
	t.Helper()
	var (
		wait sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	all := map[string]*Cluster{}
	for name, o := range options {
		wait.Go(func() {
			c, err := share(name, func(s *oneStart) (*Cluster, error) { return s.up(o) })
			mu.Lock()
			defer mu.Unlock()
			all[name], errs = c, append(errs, err)
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return all
}

func share(name string, start func(*oneStart) (*Cluster, error)) (*Cluster, error) {
	started.mu.Lock()
	if started.all == nil {
		started.all = map[string]*oneStart{}
	}
	s := started.all[name]
	if s == nil {
		s = &oneStart{}
		started.all[name] = s
	}
	started.mu.Unlock()
	s.once.Do(func() { s.cluster, s.err = start(s) })
	return s.cluster, s.err
}

func (s *oneStart) up(options Options) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "localkube-")
	if err != nil {
		return nil, err
	}
	s.dir = dir
	return up(dir, options)
}

// Start gives the test a cluster of its own, stopped when the test ends.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := down(dir); err != nil {
			t.Error(err)
		}
	})
	c, err := up(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Config is the administrator's, with a copy for each caller.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig is the path of the administrator's.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// KillAPIServer ends the API server as a power cut would. `localkube up` starts it again.
func (c *Cluster) KillAPIServer(t testing.TB) {
	t.Helper()
	server, found := c.Processes(t)["kube-apiserver"]
	if !found {
		t.Fatal("there is no API server")
	}
	if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// Processes are those of the components of the cluster, by name.
func (c *Cluster) Processes(t testing.TB) map[string]int {
	t.Helper()
	output, err := Localkube("status", "--dir", c.Dir, "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Components []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal([]byte(output), &status); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	all := map[string]int{}
	for _, component := range status.Components {
		all[component.Name] = component.PID
	}
	return all
}

func up(dir string, options Options) (*Cluster, error) {
	// Tied to this process, so that a test binary that is killed leaves nothing behind.
	args := []string{"up", "--dir", dir, "--until-exit-of", strconv.Itoa(os.Getpid())}
	if options.Profile != "" {
		args = append(args, "--profile", options.Profile)
	}
	if options.Nodes > 0 {
		args = append(args, "--nodes", strconv.Itoa(options.Nodes))
	}
	began := time.Now()
	if _, err := Localkube(args...); err != nil {
		return nil, err
	}
	wait.ClusterStarted(time.Since(began))
	c, err := open(dir)
	if err != nil {
		return nil, err
	}
	c.keepNamespaces = options.KeepNamespaces
	return c, nil
}

func open(dir string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("open the cluster in %s: %w", dir, err)
	}
	config.QPS, config.Burst = 1000, 2000 // tests wait for the cluster, not for their own client
	return &Cluster{Dir: dir, config: config}, nil
}

func down(dir string) error {
	_, err := Localkube("down", "--dir", dir)
	return err
}

// Localkube runs bin/localkube and returns what it printed.
func Localkube(args ...string) (string, error) {
	binary, err := Binary("localkube")
	if err != nil {
		return "", err
	}
	// It gives up by itself, and says what it waited for.
	cmd := exec.Command(binary, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return output.String(), fmt.Errorf("localkube %s: %w\n%s", strings.Join(args, " "), err, output.String())
	}
	return output.String(), nil
}

// programs are what a program runs in turn.
var programs = map[string][]string{"localkube": {"localkube-istiod"}}

// BinVariable names the environment variable of a directory whose programs are used instead of those in bin, such as an
// operator built with the race detector.
const BinVariable = "FAIRLEAD_BIN"

// Binary is the path of a program that make put into bin.
func Binary(name string) (string, error) {
	if dir := os.Getenv(BinVariable); dir != "" {
		if path := filepath.Join(dir, name); isFile(path) {
			return path, nil
		}
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	// Go runs a test again when a file has changed that it looked at, so it looks at what localkube runs as well.
	for _, also := range programs[name] {
		_, _ = os.Stat(filepath.Join(root, "bin", also))
	}
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: `make build localkube` builds it", err)
	}
	return path, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// LookAt looks at all files below paths of the repository. Go runs a test again when a file has changed that it looked at,
// and does not know what the programs look at that a test runs.
func LookAt(paths ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join(root, path), func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("look at what a test depends on: %w", err)
		}
	}
	return nil
}

// Root of the repository, found from wherever a test runs.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module github.com/fairlead/fairlead\n")) {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("not inside the repository of Fairlead")
		}
		dir = filepath.Dir(dir)
	}
}

var charts struct {
	once sync.Once
	dir  string
	err  error
}

// ensurePatch sees to it that there is a patch release of the newest charts. Where the module proxy has withdrawn the real
// one, it is the release before it under the next number: what tests of upgrades look at is the number.
func ensurePatch(dir string) error {
	patch := filepath.Join(dir, "v1.31.1")
	if _, err := os.Stat(patch); err == nil {
		return nil
	}
	return os.CopyFS(patch, os.DirFS(filepath.Join(dir, "v1.31.0")))
}

// Charts is a directory with Istio's charts, one for all tests of this binary.
func Charts(t testing.TB) string {
	t.Helper()
	charts.once.Do(func() {
		if charts.dir, charts.err = TempDir("charts"); charts.err == nil {
			_, charts.err = Localkube("charts", "--dir", charts.dir)
		}
		if charts.err == nil {
			charts.err = ensurePatch(charts.dir)
		}
	})
	if charts.err != nil {
		t.Fatal(charts.err)
	}
	return charts.dir
}

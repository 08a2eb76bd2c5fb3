//go:build linux

// Package localkube_test drives bin/localkube as a user does, and looks into
// /proc to see what that really started.
package localkube_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestMain(m *testing.M) {
	cluster.Parallel(3)
	var options cluster.Options
	if os.Getenv(playsAnother) != "" {
		options.Profile = "hub" // which is up sooner
	}
	os.Exit(cluster.Run(m, options))
}

// result of a command.
type result struct {
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return "exit code " + strconv.Itoa(r.code) + "\n" + r.stdout + r.stderr
}

// localkube runs a command to its end.
func localkube(t testing.TB, args ...string) result {
	t.Helper()
	return runCommand(t, command(t, args...))
}

// succeed runs a command that must not fail.
func succeed(t testing.TB, args ...string) result {
	t.Helper()
	r := localkube(t, args...)
	if r.code != 0 {
		t.Fatalf("localkube %s: %s", strings.Join(args, " "), r)
	}
	return r
}

func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := cluster.Binary("localkube")
	if err != nil {
		t.Fatal(err)
	}
	// Later than localkube itself gives up, which says what it has waited for.
	ctx, cancel := context.WithTimeout(context.Background(), 5*wait.Deadline())
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, binary, args...)
}

func runCommand(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("run %s: %v", cmd, err)
	}
	return result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

// newDir is for a cluster of the test's own, which is gone when the test ends.
func newDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cluster")
	t.Cleanup(func() {
		succeed(t, "down", "--dir", dir)
		noProcesses(t, dir)
	})
	return dir
}

// up starts what is in the directory; what a killed test binary leaves ends with it.
func up(t testing.TB, dir string, args ...string) result {
	t.Helper()
	began := time.Now()
	r := succeed(t, upArgs(dir, args...)...)
	wait.ClusterStarted(time.Since(began))
	return r
}

func upArgs(dir string, args ...string) []string {
	return append([]string{"up", "--dir", dir, "--until-exit-of", strconv.Itoa(os.Getpid())}, args...)
}

// status is what a script reads.
type status struct {
	Profile    string      `json:"profile"`
	Kubeconfig string      `json:"kubeconfig"`
	Running    bool        `json:"running"`
	Healthy    bool        `json:"healthy"`
	Components []component `json:"components"`
	Serves     []struct {
		Namespace, Service, To string
		Port                   int
	} `json:"serves"`
}

type component struct {
	Name   string `json:"name"`
	PID    int    `json:"pid"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Log    string `json:"log"`
}

// statusOf reads it, with the exit code that goes with it.
func statusOf(t testing.TB, dir string) (status, int) {
	t.Helper()
	r := localkube(t, "status", "--dir", dir, "-o", "json")
	var s status
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		t.Fatalf("status is not JSON: %v\n%s", err, r)
	}
	return s, r.code
}

func (s status) component(t testing.TB, name string) component {
	t.Helper()
	for _, c := range s.Components {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("status does not know %s: %+v", name, s.Components)
	return component{}
}

func (s status) pids() map[string]int {
	pids := map[string]int{}
	for _, c := range s.Components {
		pids[c.Name] = c.PID
	}
	return pids
}

func configOf(t testing.TB, dir string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 2000
	return config
}

func clientOf(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually waits until the condition holds; it tells why it does not yet. Cleanups wait, too.
func eventually(t testing.TB, what string, condition func() error) {
	t.Helper()
	if err := wait.Try(context.Background(), func(context.Context) error { return condition() }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// awaitServiceAccount waits for what Kubernetes makes in every namespace, a moment after the namespace: without it no pod is
// accepted.
func awaitServiceAccount(t testing.TB, client kubernetes.Interface, namespace string) {
	t.Helper()
	eventually(t, "namespace "+namespace+" gets its service account", func() error {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(context.Background(), "default", metav1.GetOptions{})
		return err
	})
}

// background is for cleaning up: the test's own context has ended by then.
func background(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Deadline())
	t.Cleanup(cancel)
	return ctx
}

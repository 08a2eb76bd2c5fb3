package install_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/pages"
)

// user types the commands of docs/install.md, in a clone of the repository.
type user struct {
	page     *pages.Page
	registry *registry
	source   string
	// home is where tools keep their files, and bin has helm, crane and kubectl.
	home, bin string
	// version is that of the fairlead in PATH.
	version    string
	kubeconfig string
}

func newUser(t testing.TB, r *registry) *user {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := pages.Read(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	u := &user{page: page, registry: r, source: clone(t, root), home: t.TempDir(), bin: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", u.bin,
		"helm.sh/helm/v4/cmd/helm", "github.com/google/go-containerregistry/cmd/crane")
	build.Dir = filepath.Join(root, "test", "install", "tools")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build helm and crane: %v\n%s", err, output)
	}
	localkube, err := cluster.Binary("localkube")
	if err != nil {
		t.Fatal(err)
	}
	kubectl := fmt.Sprintf("#!/bin/sh\nexec %s kubectl \"$@\"\n", localkube)
	if err := os.WriteFile(filepath.Join(u.bin, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	return u
}

// clone clones the repository, and commits what is not committed yet: a release is made of a commit.
func clone(t testing.TB, root string) string {
	t.Helper()
	into := filepath.Join(t.TempDir(), "source")
	git := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = root
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
		}
		return string(output)
	}
	git("clone", "-q", root, into)
	gitDir := "--git-dir=" + filepath.Join(into, ".git")
	git(gitDir, "--work-tree="+root, "add", "-A")
	if git(gitDir, "diff", "--cached", "--name-only") != "" {
		git(gitDir, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "What is not committed")
	}
	git("-C", into, "reset", "-q", "--hard")
	return into
}

// command is the one of the page that begins so, for this registry. The page is about version 0.1.0.
func (u *user) command(t testing.TB, begins, version string) string {
	t.Helper()
	var found []string
	for _, c := range u.page.Commands {
		if strings.HasPrefix(c.Text, begins+" ") {
			found = append(found, c.Text)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d commands that begin with %q, not one: %q", u.page.Path, len(found), begins, found)
	}
	return strings.NewReplacer("REGISTRY", u.registry.host, "0.1.0", version).Replace(found[0])
}

// run runs a command that has to work, and gives what it prints.
func (u *user) run(t testing.TB, command string) string {
	t.Helper()
	t.Logf("$ %s", command)
	r := u.try(t, command)
	if r.Code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", command, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// try runs a command.
func (u *user) try(t testing.TB, command string) harness.CommandResult {
	t.Helper()
	path := u.bin + ":" + u.programs(u.version) + ":" + os.Getenv("PATH")
	return u.bash(t, command, append(harness.Environment(u.home, "KUBECONFIG="+u.kubeconfig,
		"SSL_CERT_FILE="+u.registry.caFile, "DOCKER_CONFIG="+u.registry.configDir), "PATH="+path))
}

func (u *user) bash(t testing.TB, command string, environment []string) harness.CommandResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = u.source, environment, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", command, err)
	}
	return harness.CommandResult{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// programs is where the archive of a version is unpacked.
func (u *user) programs(version string) string { return filepath.Join(u.home, "fairlead", version) }

// release builds a version for this platform alone, pushes image and chart, and unpacks the command line.
func (u *user) release(t testing.TB, version string) {
	t.Helper()
	command := u.command(t, "make release", version)
	t.Logf("$ %s", command)
	// What a make around this test has been told is not meant for this one.
	environment := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") })
	if r := u.bash(t, command, append(environment, "COSIGN_KEY=", "PLATFORMS=linux/"+runtime.GOARCH)); r.Code != 0 {
		t.Fatalf("%s%s", r.Stdout, r.Stderr)
	}
	u.run(t, "cd dist && sha256sum --quiet -c checksums.txt")
	u.run(t, u.command(t, "crane push", version))
	u.run(t, u.command(t, "helm push", version))
	if err := os.MkdirAll(u.programs(version), 0o755); err != nil {
		t.Fatal(err)
	}
	u.run(t, fmt.Sprintf("tar -xzf dist/fairlead_%s_linux_%s.tar.gz -C %s", version, runtime.GOARCH, u.programs(version)))
}

// pushIstio pushes stand-ins for Istio's charts.
func (u *user) pushIstio(t testing.TB, versions ...string) {
	t.Helper()
	u.run(t, fmt.Sprintf("for chart in %s/*.tgz; do helm push $chart oci://%s/istio || exit 1; done", istioCharts(t, versions...), u.registry.host))
}

package charts

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

func openDir(t testing.TB, dir string) Source {
	t.Helper()
	source, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// chartFiles writes a chart that has some of everything.
func chartFiles(t testing.TB, dir, name, version string) {
	t.Helper()
	put(t, filepath.Join(dir, "Chart.yaml"), "apiVersion: v2\nname: "+name+"\nversion: "+strings.TrimPrefix(version, "v")+"\n")
	put(t, filepath.Join(dir, "values.yaml"), "pilot: {replicas: 1}\n")
	put(t, filepath.Join(dir, "values.schema.json"), `{"type": "object"}`)
	put(t, filepath.Join(dir, "templates", "map.yaml"), "kind: ConfigMap\n")
	put(t, filepath.Join(dir, "files", "profile-demo.yaml"), "pilot: {replicas: 2}\n")
}

func link(t testing.TB, to, from string) {
	t.Helper()
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryVersions(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, version := range []string{"v1.24.9", "v1.24.10", "v1.26.0-rc.1", "v1.26.0"} {
		chartFiles(t, filepath.Join(dir, version, "istiod"), "istiod", version)
	}
	chartFiles(t, filepath.Join(dir, "1.30.0", "istiod"), "istiod", "1.30.0")
	chartFiles(t, filepath.Join(dir, "latest", "istiod"), "istiod", "1.30.0")
	chartFiles(t, filepath.Join(dir, "v1.31.0", "base"), "base", "v1.31.0")
	put(t, filepath.Join(dir, "v1.32.0"), "a file")
	put(t, filepath.Join(dir, "v1.33.0", "istiod"), "a file")
	chartFiles(t, filepath.Join(elsewhere, "release", "istiod"), "istiod", "v1.27.0")
	link(t, filepath.Join(elsewhere, "release"), filepath.Join(dir, "v1.27.0"))
	link(t, filepath.Join(elsewhere, "nowhere"), filepath.Join(dir, "v1.28.0"))

	source := openDir(t, dir)
	want := []string{"v1.27.0", "v1.26.0", "v1.26.0-rc.1", "v1.24.10", "v1.24.9"}
	versions, err := source.Versions(t.Context())
	if diff := cmp.Diff(want, versions); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if c := load(t, source, "istiod", "v1.27.0"); c.Metadata.Version != "1.27.0" {
		t.Errorf("through the link came %s", c.Metadata.Version)
	}

	chartFiles(t, filepath.Join(dir, "v1.31.0", "istiod"), "istiod", "v1.31.0")
	versions, err = source.Versions(t.Context())
	if diff := cmp.Diff(append([]string{"v1.31.0"}, want...), versions); err != nil || diff != "" {
		t.Errorf("what came later is not seen: %v %s", err, diff)
	}

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, err = source.Versions(t.Context())
	wantError(t, err, dir, "check --chart-dir")
}

func TestDirectoryLoadsAsHelmDoes(t *testing.T) {
	dir := t.TempDir()
	istiod := filepath.Join(dir, "v1.24.0", "istiod")
	chartFiles(t, istiod, "istiod", "v1.24.0")
	want, err := loader.LoadDir(istiod)
	if err != nil {
		t.Fatal(err)
	}
	got := load(t, openDir(t, dir), "istiod", "v1.24.0")
	for what, diff := range map[string]string{
		"metadata":  cmp.Diff(want.Metadata, got.Metadata),
		"values":    cmp.Diff(want.Values, got.Values),
		"templates": cmp.Diff(want.Templates, got.Templates),
		"files":     cmp.Diff(want.Files, got.Files),
		"schema":    cmp.Diff(want.Schema, got.Schema),
	} {
		if diff != "" {
			t.Errorf("%s differ:\n%.2000s", what, diff)
		}
	}
}

func TestDirectoryNoticesChanges(t *testing.T) {
	dir := t.TempDir()
	istiod := filepath.Join(dir, "v1.24.0", "istiod")
	chartFiles(t, istiod, "istiod", "v1.24.0")
	long := time.Now().Add(-time.Hour)
	source := openDir(t, dir)
	seen := map[string]string{load(t, source, "istiod", "v1.24.0").Digest: "the chart as it was"}

	// Each keeps the times and sizes of files as they are where it can: they must not be what tells a change.
	changes := []struct {
		name   string
		change func()
	}{
		{"a value changed", func() { put(t, filepath.Join(istiod, "values.yaml"), "pilot: {replicas: 2}\n") }},
		{"a template changed", func() { put(t, filepath.Join(istiod, "templates", "map.yaml"), "kind: ConfigMop\n") }},
		{"a file came", func() { put(t, filepath.Join(istiod, "files", "profile.yaml"), "") }},
		{"a file got another name", func() {
			if err := os.Rename(filepath.Join(istiod, "files", "profile.yaml"), filepath.Join(istiod, "files", "profiles.yaml")); err != nil {
				t.Fatal(err)
			}
		}},
		{"a byte moved from one file to the next", func() {
			put(t, filepath.Join(istiod, "files", "a"), "1")
			put(t, filepath.Join(istiod, "files", "b"), "")
		}},
		{"and back", func() {
			put(t, filepath.Join(istiod, "files", "a"), "")
			put(t, filepath.Join(istiod, "files", "b"), "1")
		}},
	}
	for _, c := range changes {
		c.change()
		err := filepath.WalkDir(istiod, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chtimes(path, long, long))
		})
		if err != nil {
			t.Fatal(err)
		}
		digest := load(t, source, "istiod", "v1.24.0").Digest
		if before, ok := seen[digest]; ok {
			t.Errorf("%s: the digest is that of %s", c.name, before)
		}
		seen[digest] = c.name
	}
	replicas := load(t, source, "istiod", "v1.24.0").Values["pilot"].(map[string]any)["replicas"]
	if replicas != 2.0 {
		t.Errorf("replicas are %v", replicas)
	}

	moved := filepath.Join(dir, "v1.25.0")
	if err := os.Rename(filepath.Join(dir, "v1.24.0"), moved); err != nil {
		t.Fatal(err)
	}
	if digest := load(t, source, "istiod", "v1.25.0").Digest; seen[digest] != "and back" {
		t.Error("the digest depends on where the chart is")
	}
}

func TestDirectoryIgnores(t *testing.T) {
	dir := t.TempDir()
	istiod := filepath.Join(dir, "v1.24.0", "istiod")
	chartFiles(t, istiod, "istiod", "v1.24.0")
	put(t, filepath.Join(istiod, ".helmignore"), "*.swp\nnotes/\n")
	source := openDir(t, dir)
	before := load(t, source, "istiod", "v1.24.0")
	for _, name := range []string{"values.yaml.swp", "notes/todo", "templates/.map.yaml.new"} {
		put(t, filepath.Join(istiod, name), "no part of the chart")
	}
	if after := load(t, source, "istiod", "v1.24.0"); after.Digest != before.Digest {
		t.Error("what is ignored changes the digest")
	}
}

func TestDirectoryRefuses(t *testing.T) {
	cases := map[string]struct {
		spoil func(t *testing.T, istiod string)
		want  []string
		gone  bool
	}{
		"no chart": {func(t *testing.T, istiod string) {
			if err := os.RemoveAll(istiod); err != nil {
				t.Fatal(err)
			}
		}, []string{"load chart istiod v1.24.0", "ISTIOD does not exist", "check --chart-dir"}, true},
		"no version": {func(t *testing.T, istiod string) {
			if err := os.RemoveAll(filepath.Dir(istiod)); err != nil {
				t.Fatal(err)
			}
		}, []string{"ISTIOD does not exist"}, true},
		"no Chart.yaml": {func(t *testing.T, istiod string) {
			if err := os.Remove(filepath.Join(istiod, "Chart.yaml")); err != nil {
				t.Fatal(err)
			}
		}, []string{"load chart ISTIOD", "Chart.yaml file is missing"}, false},
		"values that are not YAML": {func(t *testing.T, istiod string) {
			put(t, filepath.Join(istiod, "values.yaml"), "a: [")
		}, []string{"load chart ISTIOD", "values.yaml"}, false},
		"a link to nowhere": {func(t *testing.T, istiod string) {
			link(t, "nowhere", filepath.Join(istiod, "templates", "link.yaml"))
		}, []string{"ISTIOD/templates/link.yaml", "no such file"}, false},
		"a link to itself": {func(t *testing.T, istiod string) {
			link(t, "..", filepath.Join(istiod, "templates", "up"))
		}, []string{"load chart ISTIOD", "ISTIOD/templates/up"}, false},
		"a socket": {func(t *testing.T, istiod string) {
			listener, err := net.Listen("unix", filepath.Join(istiod, "s"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
		}, []string{"cannot load irregular file ISTIOD/s"}, false},
		"a file that may not be read": {func(t *testing.T, istiod string) {
			if os.Geteuid() == 0 {
				t.Skip("root may read everything")
			}
			if err := os.Chmod(filepath.Join(istiod, "values.yaml"), 0); err != nil {
				t.Fatal(err)
			}
		}, []string{"ISTIOD/values.yaml", "permission denied"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			// A socket's path must be short.
			dir, err := os.MkdirTemp("", "c")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			istiod := filepath.Join(dir, "v1.24.0", "istiod")
			chartFiles(t, istiod, "istiod", "v1.24.0")
			source := openDir(t, dir)
			load(t, source, "istiod", "v1.24.0")
			c.spoil(t, istiod)
			_, err = source.Load(t.Context(), "istiod", "v1.24.0")
			for i := range c.want {
				c.want[i] = strings.ReplaceAll(c.want[i], "ISTIOD", istiod)
			}
			wantError(t, err, c.want...)
			if c.gone && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("not fs.ErrNotExist: %v", err)
			}
		})
	}
	source := openDir(t, t.TempDir())
	for _, asked := range [][2]string{{"../istiod", "v1.24.0"}, {"istiod", "v1.24-latest"}, {"istiod", ".."}, {"", "v1.24.0"}} {
		_, err := source.Load(t.Context(), asked[0], asked[1])
		wantError(t, err, "is not", source.String())
	}
}

func TestDirectoryFollowsLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	chartFiles(t, filepath.Join(dir, "v1.24.0", "istiod"), "istiod", "v1.24.0")
	chartFiles(t, filepath.Join(elsewhere, "chart"), "istiod", "v1.24.0")
	if err := os.Rename(filepath.Join(elsewhere, "chart", "templates"), filepath.Join(elsewhere, "templates")); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join(elsewhere, "templates"), filepath.Join(elsewhere, "chart", "templates"))
	if err := os.Rename(filepath.Join(elsewhere, "chart", "values.yaml"), filepath.Join(elsewhere, "v")); err != nil {
		t.Fatal(err)
	}
	link(t, "../v", filepath.Join(elsewhere, "chart", "values.yaml"))
	if err := os.Mkdir(filepath.Join(dir, "v1.25.0"), 0o700); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join(elsewhere, "chart"), filepath.Join(dir, "v1.25.0", "istiod"))

	source := openDir(t, dir)
	plain, linked := load(t, source, "istiod", "v1.24.0"), load(t, source, "istiod", "v1.25.0")
	if plain.Digest != linked.Digest {
		t.Error("links make another chart of the same files")
	}
}

func TestDirectoryForMany(t *testing.T) {
	dir := t.TempDir()
	chartFiles(t, filepath.Join(dir, "v1.24.0", "istiod"), "istiod", "v1.24.0")
	source := openDir(t, dir)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := source.Load(t.Context(), "istiod", "v1.24.0"); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := source.Versions(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Versions(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := source.Load(ended, "istiod", "v1.24.0"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

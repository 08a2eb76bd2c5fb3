package charts

import (
	"os"
	"path/filepath"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// A chart that moves from a directory to a repository or a registry is the same chart. `helm package` writes Chart.yaml and the
// lock file anew.
func TestContentDoesNotDependOnTheSource(t *testing.T) {
	dir := t.TempDir()
	istiod := filepath.Join(dir, "v1.24.0", "istiod")
	chartFiles(t, istiod, "istiod", "v1.24.0")
	put(t, filepath.Join(istiod, "Chart.yaml"), "# a comment\nversion: 1.24.0\nname: istiod\napiVersion: v2\nkeywords: []\n")
	put(t, filepath.Join(istiod, "Chart.lock"), "dependencies: []\ngenerated: \"2030-01-01T00:00:00Z\"\n")
	put(t, filepath.Join(istiod, ".helmignore"), "*.orig\n")
	put(t, filepath.Join(istiod, "templates", "map.yaml.orig"), "not a part of the chart")
	chartFiles(t, filepath.Join(istiod, "charts", "sub"), "sub", "v1.0.0")
	loaded, err := loader.LoadDir(istiod)
	if err != nil {
		t.Fatal(err)
	}
	archive := packed(t, loaded)
	want := load(t, openDir(t, dir), "istiod", "v1.24.0")
	if !sha256Digest.MatchString(want.Content) {
		t.Errorf("the digest is %q", want.Content)
	}
	if want.Digest == digestOf(archive) {
		t.Error("the digests of directory and archive do not differ, so that nothing is tested here")
	}
	eachKind(t, func(t *testing.T, s *served) {
		s.publish("istiod", "v1.24.0", archive)
		source := s.open(t)
		if got := load(t, source, "istiod", "v1.24.0").Content; got != want.Content {
			t.Errorf("downloaded: %s, in a directory: %s", got, want.Content)
		}
		s.Close()
		if got := load(t, s.open(t), "istiod", "v1.24.0").Content; got != want.Content {
			t.Errorf("from the cache: %s, in a directory: %s", got, want.Content)
		}
	})
}

// Whatever decides what is installed is part of the digest.
func TestContentNoticesChanges(t *testing.T) {
	changes := map[string]func(dir string){
		"a value":           func(dir string) { put(t, filepath.Join(dir, "values.yaml"), "pilot: {replicas: 3}\n") },
		"the schema":        func(dir string) { put(t, filepath.Join(dir, "values.schema.json"), `{"type": "array"}`) },
		"a template":        func(dir string) { put(t, filepath.Join(dir, "templates", "map.yaml"), "kind: Secret\n") },
		"another template":  func(dir string) { put(t, filepath.Join(dir, "templates", "role.yaml"), "kind: Role\n") },
		"a file":            func(dir string) { put(t, filepath.Join(dir, "files", "profile-demo.yaml"), "pilot: {}\n") },
		"a custom resource": func(dir string) { put(t, filepath.Join(dir, "crds", "crd.yaml"), "kind: X\n") },
		"the app version": func(dir string) {
			put(t, filepath.Join(dir, "Chart.yaml"), "apiVersion: v2\nname: istiod\nversion: 1.24.0\nappVersion: x\n")
		},
		"a dependency":       func(dir string) { chartFiles(t, filepath.Join(dir, "charts", "sub"), "sub", "v1.0.0") },
		"a missing template": func(dir string) { _ = os.Remove(filepath.Join(dir, "templates", "map.yaml")) },
	}
	content := func(t *testing.T, change func(dir string)) string {
		dir := t.TempDir()
		istiod := filepath.Join(dir, "v1.24.0", "istiod")
		chartFiles(t, istiod, "istiod", "v1.24.0")
		change(istiod)
		return load(t, openDir(t, dir), "istiod", "v1.24.0").Content
	}
	seen := map[string]string{content(t, func(string) {}): "no change"}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			digest := content(t, change)
			if before, ok := seen[digest]; ok {
				t.Errorf("the digest is that of %s", before)
			}
			seen[digest] = name
		})
	}
}

// A chart that was refused is downloaded again, by the process that refused it and by the next: its source may have been
// repaired.
func TestRemoteForgets(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served) {
		good, bad := small(t, "istiod", "v1.24.0", "good"), small(t, "istiod", "v1.24.0", "bad")
		s.publish("istiod", "v1.24.0", bad)
		source := s.open(t)
		load(t, source, "istiod", "v1.24.0")
		s.publish("istiod", "v1.24.0", good)

		source.Forget("istiod", "v1.24.0")
		for _, source := range []Source{source, s.open(t)} {
			if got := load(t, source, "istiod", "v1.24.0").Metadata.Description; got != "good" {
				t.Errorf("got the chart that is %s", got)
			}
		}
		source.Forget("base", "v1.24.0") // which was never there
	})
}

package clusterdir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAt(t *testing.T) {
	if _, err := At(""); err == nil || !strings.Contains(err.Error(), "--dir is required") {
		t.Errorf("no directory: error is %v, want that --dir is required", err)
	}
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := At("blue")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(here, "blue"); dir.String() != want {
		t.Errorf("At(blue) is %s, want %s", dir, want)
	}
}

func TestPrepareRefusesAPathThroughAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"the file itself": file, "under the file": filepath.Join(file, "blue")} {
		t.Run(name, func(t *testing.T) {
			err := Dir(dir).Prepare()
			if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "choose a directory") {
				t.Errorf("error is %v, want one that names %s and what to do", err, dir)
			}
		})
	}
}

func TestPrepareMakesAPrivateTree(t *testing.T) {
	dir := Dir(filepath.Join(t.TempDir(), "deep", "blue"))
	for range 2 {
		if err := dir.Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(dir.PKI())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode of %s is %o, want 700", dir.PKI(), info.Mode().Perm())
	}
	if dir.Exists() {
		t.Error("a cluster exists before one was started")
	}
}

func TestDeleteTakesOnlyItsOwn(t *testing.T) {
	tests := map[string]struct {
		foreign []string
		left    bool
	}{
		"nothing else there": {},
		"foreign files":      {foreign: []string{".processes.json-old", "notes.txt"}, left: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := Dir(filepath.Join(t.TempDir(), "blue"))
			fill(t, dir, test.foreign)
			if err := dir.Delete(); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(string(dir))
			if !test.left {
				if !os.IsNotExist(err) {
					t.Errorf("the directory is left, with %v", entries)
				}
				return
			}
			var names []string
			for _, entry := range entries {
				names = append(names, entry.Name())
			}
			if !slices.Equal(names, test.foreign) {
				t.Errorf("left are %v, want %v", names, test.foreign)
			}
		})
	}
}

// fill makes everything that a cluster leaves in its directory.
func fill(t *testing.T, dir Dir, foreign []string) {
	t.Helper()
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := dir.SaveSettings(Settings{Profile: Cluster}); err != nil {
		t.Fatal(err)
	}
	if err := dir.SaveRecords(nil); err != nil {
		t.Fatal(err)
	}
	interrupted := []string{".processes.json-2183776616", ".localkube.json-1", ".writable-2"}
	for _, path := range append(slices.Concat(foreign, interrupted), dir.Lock(), dir.StartLock(), dir.Kubeconfig(), dir.Log("etcd"), dir.PKI("ca.crt"), ControlSocket, EgressSocket) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(string(dir), path)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

package clusterdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsAreKept(t *testing.T) {
	dir := Dir(t.TempDir())
	none, err := dir.LoadSettings()
	if err != nil || !cmp.Equal(none, Settings{}) {
		t.Fatalf("settings before any are %+v, %v, want zero ones", none, err)
	}
	want := Settings{
		Profile: Hub, Ports: Ports{API: 1, EtcdClient: 2, EtcdPeer: 3}, PinnedPort: true,
		Serves:  []Serve{{Namespace: "shop", Service: "cart", Port: 443, To: "127.0.0.1:8443"}},
		Istiods: []Istiod{{Revision: "a", Namespace: "istio-system"}},
	}
	if err := dir.SaveSettings(want); err != nil {
		t.Fatal(err)
	}
	got, err := dir.LoadSettings()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings differ (-saved +loaded):\n%s", diff)
	}
	if !dir.Exists() {
		t.Error("a cluster with settings does not exist")
	}
}

func TestDamagedSettingsAreRefused(t *testing.T) {
	for name, content := range map[string]string{
		"empty":           "",
		"not JSON":        "profile: cluster\n",
		"half of it":      `{"profile": "clus`,
		"another's":       `{"profile": "production"}`,
		"wrong type":      `{"profile": "cluster", "nodes": "many"}`,
		"a list":          `[]`,
		"unknown profile": `{"profile": "Hub"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := Dir(t.TempDir())
			if err := os.WriteFile(dir.settings(), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := dir.LoadSettings()
			if err == nil {
				t.Fatal("damaged settings were read")
			}
			for _, part := range []string{dir.settings(), "localkube down --dir " + string(dir) + " --delete"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %q", err, part)
				}
			}
		})
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "new" {
		t.Fatalf("content is %q, %v, want new", data, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %o, want 600", info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the directory: %v, %v, want the file alone", entries, err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "kubeconfig"), nil); err == nil {
		t.Error("a file was written where there is no directory")
	}
}

package operator

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLeaseNamespace(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "namespace")
	if err := os.WriteFile(inside, []byte("fairlead-system\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(dir, "absent")
	cases := map[string]struct{ asked, file, want string }{
		"asked for":         {"mine", inside, "mine"},
		"inside a cluster":  {"", inside, "fairlead-system"},
		"outside a cluster": {"", outside, "kube-system"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := leaseNamespace(c.asked, c.file)
			if err != nil || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

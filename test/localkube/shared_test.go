//go:build linux

package localkube_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const playsAnother = "FAIRLEAD_TEST_PLAYS_ANOTHER"

// TestPlaysAnother is a test of another binary: it uses the shared cluster and
// tells where that lies.
func TestPlaysAnother(t *testing.T) {
	if os.Getenv(playsAnother) == "" {
		t.Skip("run by TestSharedCluster")
	}
	first, second := cluster.Shared(t), cluster.Shared(t)
	if first != second {
		t.Error("two tests of one binary have two clusters")
	}
	first.Namespace(t)
	fmt.Printf("cluster: %s\n", first.Dir)
}

// A test binary has one cluster for all its tests, stopped at its end, unless it
// was told to use one that runs.
func TestSharedCluster(t *testing.T) {
	t.Parallel()
	running := cluster.Shared(t).Dir
	another := func(t *testing.T, dir string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline())
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPlaysAnother$", "-test.count=1")
		cmd.Env = append(os.Environ(), playsAnother+"=yes", cluster.DirVariable+"="+dir)
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		_, rest, _ := strings.Cut(string(output), "cluster: ")
		used, _, _ := strings.Cut(rest, "\n")
		return used
	}
	t.Run("one that runs is used and left", func(t *testing.T) {
		if used := another(t, running); used != running {
			t.Errorf("used %s, want %s", used, running)
		}
		if _, code := statusOf(t, running); code != 0 {
			t.Errorf("it was not left running: exit code of status is %d", code)
		}
	})
	t.Run("one of its own is stopped and deleted", func(t *testing.T) {
		used := another(t, "")
		if used == "" || used == running {
			t.Fatalf("used %q, want one of its own", used)
		}
		// The one that stopped the others may be on its own way out.
		noProcesses(t, used)
		if _, err := os.Stat(used); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", used, err)
		}
	})
}

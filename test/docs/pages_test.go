// Package docs holds the pages of the documentation to what they say: it types their commands and compares what is printed.
package docs

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/pages"
)

var update = flag.Bool("update", false, "write what the commands print into the pages")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(cluster.Run(m, cluster.Options{}))
}

// TestPages runs the commands of each page in one shell, from the first to the last, or up to a heading after which each
// section has a beginning of its own.
func TestPages(t *testing.T) {
	if os.Getenv("FAIRLEAD_TESTS") != "full" {
		t.Skip("only FAIRLEAD_TESTS=full runs the commands of the documentation, which takes minutes")
	}
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the pages use %s, which is not installed", tool)
		}
	}
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, walk := range []struct{ name, end string }{
		{"meshservice", "## Concepts"},
		{"revisions", "## Concepts"},
		{"workload-migration", "## Concepts"},
		{"adoption", "## Seeing beforehand"},
		{"rollouts", "## Certificates"},
	} {
		t.Run(walk.name, func(t *testing.T) {
			page, err := pages.Read(filepath.Join(root, "docs", walk.name+".md"))
			if err != nil {
				t.Fatal(err)
			}
			session := startSession(t, page)
			changed := map[int][]string{}
			if *update {
				defer func() {
					if err := page.Replace(changed); err != nil {
						t.Error(err)
					}
				}()
			}
			for i, c := range page.Until(walk.end) {
				t.Logf("%s.md:%d: $ %s", walk.name, c.Line, c.Text)
				printed := c.Confirm(session.run(c))
				if !pages.Match(c.Shown, printed) {
					changed[i] = printed
				}
				if !*update && !c.Matches(printed) {
					t.Errorf("%s.md:%d: $ %s\nthe page shows\n%s\nthe command prints\n%s",
						walk.name, c.Line, c.Text, strings.Join(c.Shown, "\n"), strings.Join(printed, "\n"))
				}
			}
		})
	}
}

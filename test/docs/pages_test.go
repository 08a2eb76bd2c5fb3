// Package docs holds the pages of the documentation to what they say: it types their commands and compares what is printed.
package docs

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// walks are the pages whose commands are run, and the heading after which each section has a beginning of its own.
var walks = []struct{ name, end string }{
	{"meshservice", "## Concepts"},
	{"revisions", "## Concepts"},
	{"workload-migration", "## Concepts"},
	{"adoption", "## Seeing beforehand"},
	{"rollouts", "## Certificates"},
}

// TestPages runs the commands of each page in one shell, one after the other.
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
	for _, walk := range walks {
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

// TestReference holds the outputs in the reference of the command line to those in the pages whose commands are run. Blocks of
// the language text are what no page shows.
func TestReference(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) []pages.Command {
		page, err := pages.Read(filepath.Join(root, "docs", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		return page.Commands
	}
	var run []pages.Command
	for _, walk := range walks {
		run = append(run, read(walk.name)...)
	}
	for _, c := range read("cli") {
		shows := func(other pages.Command) bool { return other.Text == c.Text && pages.Match(c.Shown, other.Shown) }
		if len(c.Shown) > 0 && !slices.ContainsFunc(run, shows) {
			t.Errorf("cli.md:%d: no other page shows this output of $ %s", c.Line, c.Text)
		}
	}
}

// Package docs holds the pages of the documentation to what they say: it types their commands and compares what is printed.
package docs

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/pages"
	"github.com/fairlead/fairlead/test/harness/wait"
)

var update = flag.Bool("update", false, "write what the commands print into the pages")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(cluster.Run(m, cluster.Options{}))
}

// walks are the pages whose commands are run in one shell, in this order.
var walks = map[string][]string{
	"adoption":           {"quick-start", "rollback", "ownership", "policies", "planning", "monitoring", "clusters"},
	"meshservice":        {"quick-start"},
	"revisions":          {"quick-start", "concepts", "how-to"},
	"rollouts":           {"quick-start", "monitoring", "certificates", "troubleshooting", "steps", "v1alpha1"},
	"workload-migration": {"quick-start", "monitoring"},
}

// lastHeading is where the commands of a page end that the next page goes on from.
const lastHeading = "## To end it"

// readPages reads the files that a pattern matches, from the root of the repository on.
func readPages(t testing.TB, pattern string) []*pages.Page {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no page %s: %v", pattern, err)
	}
	var all []*pages.Page
	for _, path := range paths {
		page, err := pages.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page)
	}
	return all
}

// TestPages runs the commands of the pages, one after the other.
func TestPages(t *testing.T) {
	if os.Getenv("FAIRLEAD_TESTS") != "full" {
		t.Skip("only FAIRLEAD_TESTS=full runs the commands of the documentation, which takes minutes")
	}
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the pages use %s, which is not installed", tool)
		}
	}
	if *update {
		quotes := findQuotes(t)
		defer renew(t, quotes)
	}
	for topic, names := range walks {
		t.Run(topic, func(t *testing.T) {
			var all []*pages.Page
			for _, name := range names {
				all = append(all, readPages(t, filepath.Join("docs", topic, name+".md"))...)
			}
			session := startSession(t, all...)
			for _, page := range all {
				runPage(t, session, page)
			}
		})
	}
}

func runPage(t *testing.T, s *session, page *pages.Page) {
	t.Helper()
	changed := map[int][]string{}
	if *update {
		defer func() {
			if err := page.Replace(changed); err != nil {
				t.Error(err)
			}
		}()
	}
	for i, c := range page.Until(lastHeading) {
		var printed []string
		_ = wait.Try(t.Context(), func(context.Context) error {
			if printed = c.Confirm(s.run(c)); *update || !c.Reads() || c.Matches(printed) {
				return nil
			}
			return errors.New("the command prints something else")
		})
		if !pages.Match(c.Shown, printed) {
			changed[i] = printed
		}
		if !*update && !c.Matches(printed) {
			t.Errorf("%s:%d: $ %s\nthe page shows\n%s\nthe command prints\n%s",
				page.Path, c.Line, c.Text, strings.Join(c.Shown, "\n"), strings.Join(printed, "\n"))
		}
	}
}

// TestReference holds the outputs in the reference of the command line to those in the other pages. Blocks of the language text
// are what no other page shows.
func TestReference(t *testing.T) {
	for _, q := range findQuotes(t) {
		if q.from == nil {
			t.Errorf("%s:%d: no other page shows this output of $ %s", q.page.Path, q.page.Commands[q.index].Line, q.page.Commands[q.index].Text)
		}
	}
}

// quote is an output in the reference, and the page that it is taken from.
type quote struct {
	page, from       *pages.Page
	index, fromIndex int
}

func findQuotes(t testing.TB) []quote {
	t.Helper()
	var quotes []quote
	for _, page := range readPages(t, "docs/cli/*.md") {
		for i, c := range page.Commands {
			if len(c.Shown) > 0 {
				q := quote{page: page, index: i}
				q.from, q.fromIndex = findShown(t, c)
				quotes = append(quotes, q)
			}
		}
	}
	return quotes
}

// findShown returns the page that shows a command with its output, and the command's index there.
func findShown(t testing.TB, c pages.Command) (*pages.Page, int) {
	t.Helper()
	for topic := range walks {
		for _, page := range readPages(t, filepath.Join("docs", topic, "*.md")) {
			shows := func(other pages.Command) bool { return other.Text == c.Text && pages.Match(c.Shown, other.Shown) }
			if i := slices.IndexFunc(page.Commands, shows); i >= 0 {
				return page, i
			}
		}
	}
	return nil, 0
}

// renew writes into the reference what the pages that it quotes show by now.
func renew(t testing.TB, quotes []quote) {
	t.Helper()
	changed := map[*pages.Page]map[int][]string{}
	for _, q := range quotes {
		if q.from == nil {
			continue
		}
		now, err := pages.Read(q.from.Path)
		if err != nil {
			t.Fatal(err)
		}
		shown, printed := q.page.Commands[q.index].Shown, now.Commands[q.fromIndex].Shown
		if pages.Match(shown, printed) {
			continue
		}
		if changed[q.page] == nil {
			changed[q.page] = map[int][]string{}
		}
		changed[q.page][q.index] = printed
	}
	for page, outputs := range changed {
		if err := page.Replace(outputs); err != nil {
			t.Error(err)
		}
	}
}

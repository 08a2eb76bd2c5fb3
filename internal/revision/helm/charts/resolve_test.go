package charts

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolve(t *testing.T) {
	some := []string{"v1.27.0-rc.1", "v1.26.1", "v1.26.0", "v1.24.10", "v1.24.9", "v1.24.0", "v1.24.0-rc.2", "v1.23.4"}
	cases := map[string]struct {
		asked     string
		available []string
		want      string
		nearest   []string
		message   string
	}{
		"an exact version":      {asked: "v1.24.0", available: some, want: "v1.24.0"},
		"an exact prerelease":   {asked: "v1.24.0-rc.2", available: some, want: "v1.24.0-rc.2"},
		"the newest patch":      {asked: "v1.24-latest", available: some, want: "v1.24.10"},
		"the newest of all":     {asked: "", available: some, want: "v1.26.1"},
		"in whatever order":     {asked: "v1.24-latest", available: []string{"v1.24.2", "v1.24.10", "v1.24.9"}, want: "v1.24.10"},
		"among what is no name": {asked: "", available: []string{"latest", "1.30.0", "v1.31", "", "v1.32.0+build", "v1.24.0"}, want: "v1.24.0"},
		"the newest of another": {asked: "v1.2-latest", available: []string{"v1.24.0", "v1.20.0", "v1.2.0"}, want: "v1.2.0"},
		"a patch that is not":   {asked: "v1.24.7", available: some, nearest: []string{"v1.24.9", "v1.24.10", "v1.24.0", "v1.24.0-rc.2", "v1.23.4"}},
		"a minor that is not":   {asked: "v1.25.3", available: some, nearest: []string{"v1.26.1", "v1.26.0", "v1.24.10", "v1.24.9", "v1.24.0"}},
		"a major that is not":   {asked: "v2.0.0", available: some, nearest: []string{"v1.23.4", "v1.24.10", "v1.24.9", "v1.24.0", "v1.24.0-rc.2"}},
		"no patch of a minor":   {asked: "v1.25-latest", available: some, nearest: []string{"v1.26.1", "v1.26.0", "v1.24.10", "v1.24.9", "v1.24.0"}},
		"a prerelease is no patch": {
			asked: "v1.27-latest", available: some,
			nearest: []string{"v1.27.0-rc.1", "v1.26.1", "v1.26.0", "v1.24.10", "v1.24.9"},
			message: "spec.version v1.27-latest asks for the newest stable patch of v1.27, and there is none; " +
				"set spec.version to one that exists, of which the nearest are v1.27.0-rc.1, v1.26.1, v1.26.0, v1.24.10, v1.24.9",
		},
		"a release of which only a prerelease exists": {
			asked: "v1.27.0", available: some,
			nearest: []string{"v1.27.0-rc.1", "v1.26.1", "v1.26.0", "v1.24.10", "v1.24.9"},
		},
		"only prereleases": {
			asked: "", available: []string{"v1.27.0-rc.1", "v1.27.0-rc.2"},
			nearest: []string{"v1.27.0-rc.2", "v1.27.0-rc.1"},
			message: "spec.version is empty, which asks for the newest stable version, and there is none; " +
				"set spec.version to one that exists, of which the nearest are v1.27.0-rc.2, v1.27.0-rc.1",
		},
		"a single version": {
			asked: "v1.25.0", available: []string{"v1.24.0"}, nearest: []string{"v1.24.0"},
			message: "there are no charts of spec.version v1.25.0; set spec.version to the only one that exists, v1.24.0",
		},
		"nothing there": {
			asked: "v1.24.0",
			message: "there are no charts of spec.version v1.24.0; " +
				"the source of charts has no versions at all, so check --chart-dir or --chart-repository",
		},
		"nothing there, nothing asked": {
			asked: "",
			message: "spec.version is empty, which asks for the newest stable version, and there is none; " +
				"the source of charts has no versions at all, so check --chart-dir or --chart-repository",
		},
		"without the v":          {asked: "1.24.9", available: some, nearest: []string{"v1.24.9", "v1.24.10", "v1.24.0", "v1.24.0-rc.2", "v1.23.4"}},
		"without a patch":        {asked: "v1.26", available: some, nearest: []string{"v1.26.0", "v1.26.1", "v1.27.0-rc.1", "v1.24.10", "v1.24.9"}},
		"a word":                 {asked: "newest", available: some, nearest: []string{"v1.26.1", "v1.26.0", "v1.24.10", "v1.24.9", "v1.24.0"}},
		"latest of a patch":      {asked: "v1.24.0-latest", available: some, nearest: []string{"v1.24.0", "v1.24.0-rc.2", "v1.24.9", "v1.24.10", "v1.23.4"}},
		"latest of no number":    {asked: "v1.024-latest", available: []string{"v1.24.0"}, nearest: []string{"v1.24.0"}},
		"latest of a big number": {asked: "v1.99999999999999999999-latest", available: []string{"v1.24.0"}, nearest: []string{"v1.24.0"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(c.asked, c.available)
			if c.want != "" {
				if err != nil || got != c.want {
					t.Errorf("got %q, %v, want %s", got, err, c.want)
				}
				return
			}
			var notFound *NotFoundError
			if !errors.As(err, &notFound) {
				t.Fatalf("got %q, %v, want a NotFoundError", got, err)
			}
			if diff := cmp.Diff(&NotFoundError{Asked: c.asked, Nearest: c.nearest}, notFound); diff != "" {
				t.Error(diff)
			}
			if c.message != "" && err.Error() != c.message {
				t.Errorf("got  %s\nwant %s", err, c.message)
			}
		})
	}
}

// FuzzResolve checks what holds whatever is asked of whatever there is.
func FuzzResolve(f *testing.F) {
	f.Add("v1.24.0", "v1.24.0 v1.24.1 v1.25.0-rc.1")
	f.Add("v1.24-latest", "v1.24.0 v1.24.1 v1.24.2-rc.1 v1.240.0")
	f.Add("", "v0.0.0 v1.0.0-0")
	f.Add("v2", "v1.2 1.2.3 v01.2.3 v1.2.3+x v1.2.3")
	f.Add("v18446744073709551615.0.0", "v0.0.0 v18446744073709551615.0.0")
	f.Fuzz(func(t *testing.T, asked, list string) {
		available := strings.Fields(list)
		given := slices.Clone(available)
		got, err := Resolve(asked, available)
		if !slices.Equal(given, available) {
			t.Error("the list that was given was changed")
		}
		if again, _ := Resolve(asked, available); again != got {
			t.Errorf("asked twice, got %q and %q", got, again)
		}
		slices.Reverse(available)
		if turned, _ := Resolve(asked, available); turned != got {
			t.Errorf("got %q, and %q in another order", got, turned)
		}
		if err != nil {
			checkNotFound(t, asked, available, got, err)
			return
		}
		v, ok := parseExact(got)
		if !ok || !slices.Contains(available, got) {
			t.Fatalf("%q is not among the exact versions of %q", got, available)
		}
		if asked == got {
			return
		}
		series, alias := parseLatest(asked)
		if asked != "" && !alias {
			t.Errorf("asked for %q, got %q", asked, got)
		}
		for _, name := range available {
			other, ok := parseExact(name)
			if ok && stable(other) && other.GreaterThan(v) && (asked == "" || sameMinor(other, series)) {
				t.Errorf("asked for %q, got %s, though there is %s", asked, got, name)
			}
		}
		if !stable(v) || alias && !sameMinor(v, series) {
			t.Errorf("asked for %q, got %s", asked, got)
		}
	})
}

func checkNotFound(t *testing.T, asked string, available []string, got string, err error) {
	t.Helper()
	var notFound *NotFoundError
	if !errors.As(err, &notFound) || got != "" || notFound.Asked != asked {
		t.Fatalf("got %q, %#v", got, err)
	}
	exact := newestFirst(available)
	if len(notFound.Nearest) != min(len(exact), maxNearest) {
		t.Errorf("%d of %d versions are offered", len(notFound.Nearest), len(exact))
	}
	for i, name := range notFound.Nearest {
		if !slices.Contains(exact, name) || slices.Contains(notFound.Nearest[:i], name) {
			t.Errorf("%q is offered, of %q", notFound.Nearest, exact)
		}
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in the message %s", name, err)
		}
	}
	if slices.Contains(exact, asked) {
		t.Errorf("%s is there, and was not found", asked)
	}
}

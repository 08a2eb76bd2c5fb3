package charts

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serveIndex serves a repository with a handmade index, in which URL stands for where archive can be had.
func serveIndex(t *testing.T, index string, archive []byte) *served {
	s := serveRepository(t, false)
	s.on(func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/charts/index.yaml":
			_, _ = fmt.Fprint(w, strings.ReplaceAll(index, "URL", s.URL))
		case "/elsewhere/istiod.tgz":
			_, _ = w.Write(archive)
		default:
			return false
		}
		return true
	})
	return s
}

func TestRepositoryIndex(t *testing.T) {
	archive := small(t, "istiod", "v1.24.0", "")
	digest := strings.TrimPrefix(digestOf(archive), "sha256:")
	entry := func(version, url, digest string) string {
		return fmt.Sprintf("  - {apiVersion: v2, name: istiod, version: %s, digest: %q, urls: [%s]}\n", version, digest, url)
	}
	const start = "apiVersion: v1\nentries:\n  istiod:\n"
	cases := map[string]struct {
		index string
		// Either what is wrong, or nothing.
		want []string
	}{
		"a relative URL":           {index: start + entry("1.24.0", "../elsewhere/istiod.tgz", digest)},
		"an absolute URL":          {index: start + entry("1.24.0", "URL/elsewhere/istiod.tgz", digest)},
		"the absolute path":        {index: start + entry("1.24.0", "/elsewhere/istiod.tgz", digest)},
		"a version with a v":       {index: start + entry("v1.24.0", "/elsewhere/istiod.tgz", digest)},
		"a digest with its name":   {index: start + entry("1.24.0", "/elsewhere/istiod.tgz", "sha256:"+digest)},
		"fields of the future":     {index: start + entry("1.24.0", "/elsewhere/istiod.tgz", digest) + "    \nfuture: {}\n"},
		"an entry that is nothing": {index: start + "  - null\n" + entry("1.24.0", "/elsewhere/istiod.tgz", digest)},

		"another digest": {start + entry("1.24.0", "/elsewhere/istiod.tgz", strings.Repeat("0", 64)),
			[]string{digestOf(archive), "the index says sha256:" + strings.Repeat("0", 64), "is discarded"}},
		"no digest":      {start + entry("1.24.0", "/elsewhere/istiod.tgz", ""), []string{"no SHA-256 digest"}},
		"a short digest": {start + entry("1.24.0", "/elsewhere/istiod.tgz", "abc"), []string{"no SHA-256 digest"}},
		"no URL":         {start + entry("1.24.0", "", digest), []string{"no URL for the chart"}},
		"a bad URL":      {start + entry("1.24.0", "'%zz'", digest), []string{"the URL in the index of the repository"}},
		"plain http elsewhere": {start + entry("1.24.0", "http://charts.example/istiod.tgz", digest),
			[]string{"http://charts.example/istiod.tgz", "plain http is for this machine only"}},
		"another protocol": {start + entry("1.24.0", "ftp://charts.example/istiod.tgz", digest), []string{"unsupported protocol"}},
		"a removed chart":  {start + strings.Replace(entry("1.24.0", "x", digest), "{", "{removed: true, ", 1), []string{"no such chart"}},
		"no entries":       {"apiVersion: v1\nentries: {}\n", []string{"no such chart"}},
		"nothing":          {"", []string{"index.yaml is not the index of a Helm repository"}},
		"a web page":       {"<html>\n\tWelcome: a: b</html>", []string{"index.yaml is not the index of a Helm repository", "check --chart-repository"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			source := serveIndex(t, c.index, archive).open(t)
			_, err := source.Load(t.Context(), "istiod", "v1.24.0")
			if c.want != nil {
				wantError(t, err, c.want...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			versions, err := source.Versions(t.Context())
			if diff := cmp.Diff([]string{"v1.24.0"}, versions); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestRepositoryRedirectsToPlainHTTP(t *testing.T) {
	s := serveRepository(t, true)
	s.on(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "http://charts.example/index.yaml", http.StatusFound)
		return true
	})
	_, err := s.open(t).Versions(t.Context())
	wantError(t, err, "plain http is for this machine only")
}

func TestRepositoryOfUnknownAuthority(t *testing.T) {
	s := serveRepository(t, true)
	s.options.CAFile = ""
	_, err := s.open(t).Versions(t.Context())
	wantError(t, err, s.options.Repository, "certificate", "check --chart-repository")
}

func TestRepositoryWithoutVersions(t *testing.T) {
	s := serveRepository(t, false)
	source := s.open(t)
	for range 2 {
		versions, err := source.Versions(t.Context())
		if err != nil || len(versions) != 0 {
			t.Errorf("got %v, %v", versions, err)
		}
	}
	if asked := s.count(func() { _, _ = source.Versions(t.Context()) }); asked != 0 {
		t.Errorf("that there are none was not remembered: %d requests", asked)
	}
}

func TestAnswerWithoutEnd(t *testing.T) {
	s := serveRepository(t, false)
	zeros := make([]byte, 1<<20)
	s.on(func(w http.ResponseWriter, _ *http.Request) bool {
		for {
			if _, err := w.Write(zeros); err != nil {
				return true
			}
		}
	})
	_, err := s.open(t).Versions(t.Context())
	wantError(t, err, "the answer is larger than any chart may be")
}

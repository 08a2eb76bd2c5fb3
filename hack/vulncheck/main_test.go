package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReach(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/v/index/db.json" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"modified":"2026-01-01T00:00:00Z"}`))
	}))
	defer server.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "index"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "index", "db.json"), []byte(`{}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		database, proxy string
		// version is what identifies the database, and why what the error says.
		version, why string
		asked        int
	}{
		"there":              {database: server.URL + "/v", version: `{"modified":"2026-01-01T00:00:00Z"}`, asked: 1},
		"not a database":     {database: server.URL, why: "404", asked: 1},
		"nobody answers":     {database: "http://" + closed.Addr().String(), why: "cannot be reached"},
		"off":                {database: "off", why: "GOVULNDB is off"},
		"offline":            {database: server.URL + "/v", proxy: "off", why: "GOPROXY is off"},
		"a copy":             {database: "file://" + dir, version: `{}`},
		"a copy, offline":    {database: "file://" + dir, proxy: "off", version: `{}`},
		"a copy, not there":  {database: "file://" + dir + "/none", why: "there is no vulnerability database"},
		"no URL":             {database: "http://[", why: "GOVULNDB"},
		"an unknown kind of": {database: "gopher://127.0.0.1", why: "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			version, err := reach(c.database, c.proxy)
			if string(version) != c.version || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %q, %v", version, err)
			}
			if asked != c.asked {
				t.Errorf("the database is asked %d times", asked)
			}
		})
	}
}

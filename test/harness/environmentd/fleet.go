package environmentd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Fleet is every environmentd of a cluster, each of which appears when it is first asked for.
type Fleet struct {
	server *httptest.Server

	mu     sync.Mutex
	all    map[string]*Environmentd
	manner Manner
}

// New is a fleet that whoever likes may serve, below Path.
func New() *Fleet { return &Fleet{all: map[string]*Environmentd{}} }

// Path of the one of a generation, as --environmentd-url takes it.
const Path = "/{{.Namespace}}/{{.Name}}/{{.Generation}}"

// Start serves a fleet on this machine, until it is closed.
func Start() *Fleet {
	f := New()
	f.server = httptest.NewServer(f)
	return f
}

// Close ends all of them.
func (f *Fleet) Close() { f.server.Close() }

// URL is for --environmentd-url.
func (f *Fleet) URL() string { return f.server.URL + Path }

// Behave is the manner of those that have yet to appear.
func (f *Fleet) Behave(m Manner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manner = m
}

// Of is the one of a generation, such as "shop/mz/2".
func (f *Fleet) Of(generation string) *Environmentd {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.all[generation]
	if e == nil {
		e = &Environmentd{manner: f.manner}
		f.all[generation] = e
	}
	return e
}

// Replace ends the one of a generation. What appears in its place knows nothing of it.
func (f *Fleet) Replace(generation string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, generation)
}

func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 4)
	if len(parts) < 4 {
		http.NotFound(w, r)
		return
	}
	generation := strings.Join(parts[:3], "/")
	http.StripPrefix("/"+generation, f.Of(generation)).ServeHTTP(w, r)
}

// Package environmentd plays environmentd for tests and demonstrations: an HTTP server that answers as the leader API of
// one does, for as many generations of as many environments as ask, and that can be as difficult as a real one.
package environmentd

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The states of an environmentd, in their order.
const (
	Initializing   = "Initializing"
	ReadyToPromote = "ReadyToPromote"
	Promoting      = "Promoting"
	IsLeader       = "IsLeader"
)

// Manner is how an environmentd treats who asks it.
type Manner struct {
	// Holds requests of this kind, "status", "promote" or "skip-catchup", until its manner changes, and does nothing about
	// them before that.
	Holds string
	// Withholds the answer to requests of this kind until its manner changes, after it has done what it was asked to.
	Withholds string
	// Refuses to be promoted, with these words.
	Refuses string
	// Resets connections instead of answering, after it has done what it was asked to.
	Resets bool
	// Garbles what it answers.
	Garbles bool
	// Forgets that it was asked to take over: it says yes and stays as it is.
	Forgets bool
	// CatchesUp only when it is told to, or told not to wait for that. It starts anew with that every time.
	CatchesUp bool
	// CatchesUpAfter is how long it takes by itself, from when it is first asked. It takes that long every time.
	CatchesUpAfter time.Duration
	// Lingers while it takes over, until its manner changes.
	Lingers bool
}

// Environmentd is one of them.
type Environmentd struct {
	mu     sync.Mutex
	manner Manner
	status string
	asked  []string
	// changed is closed when the manner changes. held are the requests that wait for that, by kind.
	changed chan struct{}
	held    map[string]int
	// began is when it was first asked.
	began time.Time
	// beforeLeading is called before it leads.
	beforeLeading func()
}

// BeforeLeading has something done just before it leads, in the moment when it does. That must not ask this environmentd.
func (e *Environmentd) BeforeLeading(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.beforeLeading = do
}

func (e *Environmentd) lead() {
	if e.beforeLeading != nil {
		e.beforeLeading()
	}
	e.status = IsLeader
}

// Behave changes the manner from now on.
func (e *Environmentd) Behave(m Manner) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.manner = m
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
	if e.status == Promoting && !m.Lingers {
		e.lead()
	}
}

// CatchUp makes it ready to take over.
func (e *Environmentd) CatchUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current() == Initializing {
		e.status = ReadyToPromote
	}
}

// Restart ends it, and starts it anew: one that leads comes back as the leader that it was.
func (e *Environmentd) Restart() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status != IsLeader {
		e.status, e.began = "", time.Time{}
	}
}

// Status is what it would say of itself.
func (e *Environmentd) Status() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current()
}

// Asked is what it was asked so far but for its status, such as "promote".
func (e *Environmentd) Asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.asked...)
}

// Holding is how many requests of a kind it holds, or withholds the answer to, at present.
func (e *Environmentd) Holding(kind string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held[kind]
}

// hold waits while its manner holds requests of a kind, and tells whether the caller is still there.
func (e *Environmentd) hold(ctx context.Context, kind string, by func(Manner) string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for by(e.manner) == kind {
		if e.held == nil {
			e.held = map[string]int{}
		}
		if e.changed == nil {
			e.changed = make(chan struct{})
		}
		changed := e.changed
		e.held[kind]++
		e.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		e.mu.Lock()
		e.held[kind]--
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

func (e *Environmentd) current() string {
	switch {
	case e.status != "":
		return e.status
	case e.manner.CatchesUp, e.manner.CatchesUpAfter > 0 && (e.began.IsZero() || time.Since(e.began) < e.manner.CatchesUpAfter):
		return Initializing
	}
	return ReadyToPromote
}

func (e *Environmentd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := strings.TrimPrefix(r.URL.Path, "/api/leader/")
	if !e.hold(r.Context(), kind, func(m Manner) string { return m.Holds }) {
		return
	}
	e.mu.Lock()
	manner := e.manner
	if e.began.IsZero() {
		e.began = time.Now()
	}
	code, body := e.answer(r.Method, r.URL.Path)
	e.mu.Unlock()
	if !e.hold(r.Context(), kind, func(m Manner) string { return m.Withholds }) {
		return
	}
	switch {
	case manner.Resets:
		reset(w)
		return
	case manner.Garbles:
		body = []byte("<html>it works!</html>")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// answer does what is asked, and says so.
func (e *Environmentd) answer(method, path string) (int, []byte) {
	if method == http.MethodGet && path == "/api/leader/status" {
		return http.StatusOK, encode(map[string]any{"status": e.current()})
	}
	asked, found := strings.CutPrefix(path, "/api/leader/")
	if !found || method != http.MethodPost {
		return http.StatusNotFound, encode("not found")
	}
	e.asked = append(e.asked, asked)
	refuse := func(format string, args ...any) (int, []byte) {
		return http.StatusBadRequest, encode(map[string]any{
			"result": map[string]any{"Failure": map[string]any{"message": fmt.Sprintf(format, args...)}},
		})
	}
	switch {
	case asked == "skip-catchup" && e.current() != Initializing:
		return refuse("there is nothing to skip")
	case asked == "skip-catchup":
		e.status = ReadyToPromote
	case asked != "promote":
		return http.StatusNotFound, encode("not found")
	case e.manner.Refuses != "":
		return refuse("%s", e.manner.Refuses)
	case e.current() == Initializing:
		return refuse("cannot be promoted before it is ready")
	case e.current() == ReadyToPromote && !e.manner.Forgets:
		if e.manner.Lingers {
			e.status = Promoting
		} else {
			e.lead()
		}
	}
	return http.StatusOK, encode(map[string]any{"result": "Success"})
}

func encode(value any) []byte {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // nothing here cannot be written
	}
	return body
}

// reset breaks the connection as a process that is killed does.
func reset(w http.ResponseWriter) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}

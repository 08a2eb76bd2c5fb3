package faults

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// ErrCut is what every request of a process gets once it has been cut off.
var ErrCut = errors.New("faults: the process is cut off from the API server")

// Injector applies rules to the API traffic of one process, and keeps a log of
// its writes.
type Injector struct {
	life  context.Context
	end   context.CancelCauseFunc
	under sync.WaitGroup // writes that are on their way

	mu      sync.Mutex
	rules   []*armed
	counted Match
	fired   bool
	log     []*Entry
	writing int       // writes that are on their way
	active  time.Time // when the last of them ended, or a watch was opened
}

// New returns an Injector with the given rules, which are asked in order; all
// that match apply, the first one outermost.
func New(rules ...Rule) *Injector {
	in := &Injector{counted: Write}
	in.life, in.end = context.WithCancelCause(context.Background())
	for _, r := range rules {
		in.Add(r)
	}
	return in
}

// Add brings a rule into force from now on.
func (in *Injector) Add(r Rule) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rules = append(in.rules, &armed{Rule: r})
}

// Counting replaces what is logged and counted as a write; the default is Write.
func (in *Injector) Counting(m Match) *Injector {
	in.counted = m
	return in
}

// Config returns a copy of cfg whose traffic goes through the Injector.
func (in *Injector) Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return &transport{in: in, base: base} })
	return cfg
}

// Cut ends the process's life now: see ErrCut.
func (in *Injector) Cut() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.end(ErrCut)
}

// Dead is closed when the process has been cut off.
func (in *Injector) Dead() <-chan struct{} { return in.life.Done() }

// Drain waits until no write is on its way any more. After a cut this is the
// moment from which the dead process can no longer change anything.
func (in *Injector) Drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		in.under.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Fired tells whether any rule has hit a request.
func (in *Injector) Fired() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.fired
}

// Log returns the writes so far.
func (in *Injector) Log() Log {
	in.mu.Lock()
	defer in.mu.Unlock()
	log := make(Log, len(in.log))
	for i, e := range in.log {
		log[i] = *e
	}
	return log
}

// quietFor tells how long the process has neither written nor opened a watch.
// A process that has not been heard of at all is starting, not quiet.
func (in *Injector) quietFor(now time.Time) time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.active.IsZero() || in.writing > 0 {
		return 0
	}
	return now.Sub(in.active)
}

// decide decides in one step what happens to a request, so that of two that
// arrive together exactly one is the k-th, and none slips through after a cut.
func (in *Injector) decide(r Request) (*exchange, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.life.Err() != nil {
		return nil, ErrCut
	}
	x := &exchange{in: in, request: r}
	write := r.Writes()
	if in.active.IsZero() || write && in.counted(r) || Watch(r) {
		in.active = time.Now()
	}
	if write && in.counted(r) {
		x.entry = &Entry{Request: r}
		in.log = append(in.log, x.entry)
	}
	for _, rule := range in.rules {
		if rule.hits(r) {
			in.fired = true
			x.actions = append(x.actions, rule.Action)
		}
	}
	if write {
		in.under.Add(1)
	}
	if x.entry != nil {
		in.writing++
	}
	if slices.ContainsFunc(x.actions, func(a Action) bool { return a.cuts }) {
		in.end(ErrCut)
	}
	return x, nil
}

// ended notes that a request has been answered.
func (in *Injector) ended(x *exchange) {
	if x.entry != nil {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.writing--
		in.active = time.Now()
	}
	if x.request.Writes() {
		in.under.Done()
	}
}

// note records what became of a write; the first to know says it best.
func (in *Injector) note(e *Entry, result string) {
	if e == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if e.Result == "" {
		e.Result = result
	}
}

// amend adds to the result of a write that the server has answered.
func (in *Injector) amend(e *Entry, more string) {
	if e == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	e.Result += more
}

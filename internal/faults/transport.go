package faults

import (
	"context"
	"io"
	"net/http"
	"strconv"
)

// transport is the Injector's place in a client's HTTP stack.
type transport struct {
	in   *Injector
	base http.RoundTripper
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, err := t.in.decide(describe(req))
	if err != nil {
		return nil, err
	}
	defer t.in.ended(x)
	x.http, x.base = req, t.base
	resp, err := x.next()
	if err != nil {
		x.note(err.Error())
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport underneath.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.base }

// exchange is one request on its way through the actions that apply to it.
type exchange struct {
	in      *Injector
	request Request
	http    *http.Request
	base    http.RoundTripper
	actions []Action
	entry   *Entry
}

// next lets the first remaining action handle the request, or sends it.
func (x *exchange) next() (*http.Response, error) {
	if len(x.actions) == 0 {
		return x.send()
	}
	action := x.actions[0]
	x.actions = x.actions[1:]
	return action.do(x)
}

func (x *exchange) note(result string) { x.in.note(x.entry, result) }

func (x *exchange) send() (*http.Response, error) {
	ctx, release := x.lifetime()
	resp, err := x.base.RoundTrip(x.http.WithContext(ctx))
	if err != nil {
		release()
		if x.in.life.Err() != nil {
			return nil, ErrCut
		}
		return nil, err
	}
	x.note(strconv.Itoa(resp.StatusCode))
	resp.Body = &body{ReadCloser: resp.Body, life: x.in.life, release: release}
	return resp, nil
}

// lifetime is how long the request may take. A cut severs reads at once. A write
// that is already on its way is left to arrive: whether it would have is a race,
// and one that arrived late could hit the next process.
func (x *exchange) lifetime() (context.Context, func()) {
	parent := x.http.Context()
	if !x.request.Writes() {
		ctx, cancel := context.WithCancelCause(parent)
		stop := context.AfterFunc(x.in.life, func() { cancel(ErrCut) })
		return ctx, func() { stop(); cancel(nil) }
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		if x.in.life.Err() == nil {
			cancel(context.Cause(parent))
		}
	})
	return ctx, func() { stop(); cancel(nil) }
}

// body is an answer that can no longer be read after the cut.
type body struct {
	io.ReadCloser
	life    context.Context
	release func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.life.Err() != nil {
		return 0, ErrCut
	}
	return n, err
}

func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

package faults

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// DropWatch breaks the connection of a watch once it has delivered n events.
// Bookmarks count, and so do the initial events of a streaming list, which is
// never complete when each of its attempts is dropped: tie the rule to an Nth.
func DropWatch(n int) Action {
	return Action{name: fmt.Sprintf("drop watch after %d events", n), do: func(x *exchange) (*http.Response, error) {
		resp, err := x.next()
		if err != nil || !Watch(x.request) || resp.StatusCode != http.StatusOK {
			return resp, err
		}
		read, err := frameReader(resp.Header.Get("Content-Type"))
		if err != nil {
			resp.Body.Close()
			return nil, fmt.Errorf("drop watch of %s: %w", x.request, err)
		}
		resp.Body = &countedWatch{Closer: resp.Body, from: bufio.NewReader(resp.Body), frame: read, left: n}
		return resp, nil
	}}
}

// DropWatchAfter breaks the connection of a watch when it has been open for d.
func DropWatchAfter(d time.Duration) Action {
	return Action{name: "drop watch after " + d.String(), do: func(x *exchange) (*http.Response, error) {
		resp, err := x.next()
		if err != nil || !Watch(x.request) || resp.StatusCode != http.StatusOK {
			return resp, err
		}
		timed := &timedWatch{ReadCloser: resp.Body}
		timed.timer = time.AfterFunc(d, timed.drop)
		resp.Body = timed
		return resp, nil
	}}
}

// countedWatch hands on whole events until none is left to give.
type countedWatch struct {
	io.Closer
	from    *bufio.Reader
	frame   func(*bufio.Reader) ([]byte, error)
	left    int
	pending []byte
}

func (w *countedWatch) Read(p []byte) (int, error) {
	if len(w.pending) == 0 {
		if w.left == 0 {
			w.Close()
			return 0, io.ErrUnexpectedEOF
		}
		frame, err := w.frame(w.from)
		if err != nil {
			return 0, err
		}
		w.pending = frame
		w.left--
	}
	n := copy(p, w.pending)
	w.pending = w.pending[n:]
	return n, nil
}

// frameReader returns how one event is read from a watch of that content type.
func frameReader(contentType string) (func(*bufio.Reader) ([]byte, error), error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("read content type %q: %w", contentType, err)
	}
	switch mediaType {
	case runtime.ContentTypeJSON:
		return func(r *bufio.Reader) ([]byte, error) { return r.ReadBytes('\n') }, nil
	case runtime.ContentTypeProtobuf:
		return readLengthDelimited, nil
	}
	return nil, fmt.Errorf("events of type %s cannot be told apart", mediaType)
}

func readLengthDelimited(r *bufio.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
	copy(frame, size[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// timedWatch ends like a broken connection when its time is over.
type timedWatch struct {
	io.ReadCloser
	timer   *time.Timer
	dropped atomic.Bool
}

func (w *timedWatch) drop() {
	w.dropped.Store(true)
	w.ReadCloser.Close()
}

func (w *timedWatch) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil && w.dropped.Load() {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (w *timedWatch) Close() error {
	w.timer.Stop()
	return w.ReadCloser.Close()
}

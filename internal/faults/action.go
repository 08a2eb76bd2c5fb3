package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Action is what happens to a request.
type Action struct {
	name string
	// cuts marks the end of the process; it takes effect for all later requests
	// as soon as this one is met, before do runs.
	cuts bool
	do   func(*exchange) (*http.Response, error)
}

func (a Action) String() string { return a.name }

// CutBefore ends the process before the request is sent.
func CutBefore() Action {
	return Action{name: "cut before", cuts: true, do: func(x *exchange) (*http.Response, error) {
		x.note("never sent, the process was cut off here")
		return nil, ErrCut
	}}
}

// CutAfter lets the server carry the request out, and ends the process before
// the answer reaches it.
func CutAfter() Action {
	return Action{name: "cut after", cuts: true, do: func(x *exchange) (*http.Response, error) {
		resp, err := x.next()
		if err != nil {
			return nil, err
		}
		resp.Body.Close()
		x.in.amend(x.entry, ", but the process was cut off before it heard")
		return nil, ErrCut
	}}
}

// Conflict refuses the request as an update of an outdated object is refused.
func Conflict() Action {
	return refuse("conflict", func(r Request) *apierrors.StatusError {
		return apierrors.NewConflict(r.Resource.GroupResource(), r.Name,
			errors.New("faults: the object has been modified"))
	})
}

// TooManyRequests refuses the request as an overloaded server does. Clients are
// asked to come back after the given time, rounded up to seconds; client-go does
// so unseen. Without a time the caller gets to see the refusal.
func TooManyRequests(retryAfter time.Duration) Action {
	return refuse("too many requests", func(Request) *apierrors.StatusError {
		return apierrors.NewTooManyRequests("faults: the server is busy", int(math.Ceil(retryAfter.Seconds())))
	})
}

// InternalError refuses the request as a broken server or webhook does.
func InternalError() Action {
	return refuse("internal error", func(Request) *apierrors.StatusError {
		return apierrors.NewInternalError(errors.New("faults: something broke"))
	})
}

// Expired refuses a list or watch whose resource version has been compacted
// away, which makes an informer list anew.
func Expired() Action {
	return refuse("expired", func(Request) *apierrors.StatusError {
		return apierrors.NewResourceExpired("faults: the resource version is too old")
	})
}

// Hold holds the request back until the channel is closed.
func Hold(until <-chan struct{}) Action {
	return Action{name: "hold", do: func(x *exchange) (*http.Response, error) {
		select {
		case <-until:
			return x.next()
		case <-x.http.Context().Done():
			return nil, x.http.Context().Err()
		case <-x.in.Dead():
			return nil, ErrCut
		}
	}}
}

func refuse(name string, as func(Request) *apierrors.StatusError) Action {
	return Action{name: name, do: func(x *exchange) (*http.Response, error) {
		status := as(x.request).Status()
		status.Kind, status.APIVersion = "Status", "v1"
		raw, err := json.Marshal(status)
		if err != nil {
			return nil, fmt.Errorf("encode refusal of %s: %w", x.request, err)
		}
		resp := &http.Response{
			Status:     fmt.Sprintf("%d %s", status.Code, http.StatusText(int(status.Code))),
			StatusCode: int(status.Code),
			Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header:        http.Header{"Content-Type": {"application/json"}},
			Body:          io.NopCloser(bytes.NewReader(raw)),
			ContentLength: int64(len(raw)),
			Request:       x.http,
		}
		if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
			resp.Header.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
		}
		x.note(fmt.Sprintf("%d (injected)", status.Code))
		return resp, nil
	}}
}

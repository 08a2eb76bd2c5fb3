package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

func TestPassing(t *testing.T) {
	resource := schema.GroupResource{Resource: "customresourcedefinitions"}
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"nobody listens":        {refused, true},
		"wrapped":               {fmt.Errorf("install: %w", refused), true},
		"the server is busy":    {apierrors.NewTooManyRequests("later", 1), true},
		"the server broke":      {apierrors.NewInternalError(errors.New("etcd")), true},
		"the server is leaving": {apierrors.NewServiceUnavailable("bye"), true},
		"not served yet":        {fmt.Errorf("kind: %w", errNotYet{errors.New("no CRD")}), true},
		"not permitted":         {apierrors.NewForbidden(resource, "x", errors.New("no")), false},
		"not who we say":        {apierrors.NewUnauthorized("who?"), false},
		"anything else":         {errors.New("broken manifest"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isTransient(c.err); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPersist(t *testing.T) {
	quick := func() wait.Backoff { return wait.Backoff{Duration: time.Microsecond, Steps: 10} }
	t.Run("tries until it works", func(t *testing.T) {
		tries := 0
		err := retryTransient(t.Context(), logr.Discard(), quick(), "reach", func(context.Context) error {
			if tries++; tries < 3 {
				return errNotYet{errors.New("no")}
			}
			return nil
		})
		if err != nil || tries != 3 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
	t.Run("gives up on what waiting cannot heal", func(t *testing.T) {
		tries := 0
		err := retryTransient(t.Context(), logr.Discard(), quick(), "install", func(context.Context) error {
			tries++
			return errors.New("forbidden")
		})
		if err == nil || err.Error() != "install: forbidden" || tries != 1 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := retryTransient(ctx, logr.Discard(), wait.Backoff{Duration: time.Hour, Steps: 1}, "reach", func(context.Context) error {
			cancel()
			return errNotYet{errors.New("no")}
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestStartBackoff(t *testing.T) {
	backoff := startBackoff()
	var last time.Duration
	for range 20 {
		last = backoff.Step()
	}
	if last < 30*time.Second || last > 33*time.Second {
		t.Errorf("settles at %s", last)
	}
}

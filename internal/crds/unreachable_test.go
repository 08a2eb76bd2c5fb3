package crds

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestUnreachable(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		const gone = "http://127.0.0.1:1" // a port that is given to no listener
		results, err := Install(t.Context(), &rest.Config{Host: gone}, Options{})
		if err == nil || !strings.Contains(err.Error(), gone) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
		if strings.Count(fmt.Sprint(err), "\n") > 0 {
			t.Errorf("one server, but several errors: %v", err)
		}
		for _, result := range results {
			if result.Outcome != Failed {
				t.Errorf("got %+v", result)
			}
		}
	})

	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	t.Cleanup(silent.Close)
	t.Run("nobody answers", func(t *testing.T) {
		_, err := Install(t.Context(), &rest.Config{Host: silent.URL}, Options{Timeout: 100 * time.Millisecond})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), silent.URL) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the caller gives up", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("told to stop")
		asked := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			cancel(why)
			<-req.Context().Done()
		}))
		t.Cleanup(asked.Close)
		if _, err := Install(ctx, &rest.Config{Host: asked.URL}, Options{Timeout: wait.Deadline()}); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
}

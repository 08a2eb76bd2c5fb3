package revision_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// What others keep says so, and says who: its control plane has gone all the same.
func TestKeptByOthers(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	const backup = "example.com/backup"
	revision := makeRevision(shortName(t), w.namespace(t), "v1.26.0")
	revision.Finalizers = []string{backup}
	ready(t, w, create(t, w, revision))
	tag := makeTag(shortName(t)+"-tag", v1.IstioRevisionKind, revision.Name)
	tag.Finalizers = []string{backup}
	w.points(t, create(t, w, tag), revision.Name)
	letGo := func(object client.Object) {
		t.Cleanup(func() {
			_ = w.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		})
	}
	letGo(revision)
	letGo(tag)

	for _, object := range []client.Object{tag, revision} {
		if err := w.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		until(t, w, object, func(object client.Object) error {
			got := condition(object, v1.ConditionReconciled)
			if got.Status != metav1.ConditionFalse || !strings.HasSuffix(got.Message, "have removed their finalizers: "+backup) {
				return errors.New("it does not say who keeps it")
			}
			return nil
		})
	}
	if tag.Status.State != v1.State(v1.ReasonBeingDeleted) || revision.Status.State != v1.State(v1.ReasonBeingDeleted) {
		t.Errorf("the states are %s and %s", tag.Status.State, revision.Status.State)
	}
	w.nothingLeft(t, func(kind string, o client.Object) bool {
		return strings.Contains(o.GetName(), "istiod-"+revision.Name) || strings.Contains(o.GetName(), tag.Name+"-"+revision.Spec.Namespace)
	})
}

// A status is for the Istio that was looked at, not for one that has its name by the time it is written.
func TestStatusIsNotInherited(t *testing.T) {
	t.Parallel()
	w := newHub(t)
	first := revisionBased("mesh", "missing", "v1.24.0", 0)
	w.make(t, first)
	second := revisionBased("mesh", "missing", "v1.26.0", 0)

	var once atomic.Bool
	answer := make(chan int, 1)
	config := rest.CopyConfig(w.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/istios/mesh/status") || !once.CompareAndSwap(false, true) {
				return next.RoundTrip(r)
			}
			if err := errors.Join(w.Delete(r.Context(), first), w.Create(r.Context(), second)); err != nil {
				return nil, err
			}
			response, err := next.RoundTrip(r)
			if err == nil {
				answer <- response.StatusCode
			}
			return response, err
		})
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	run := inProcess(t)
	go func() { ended <- run(ctx, config) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if code := <-answer; code != http.StatusConflict {
		t.Errorf("what was to be said of the first was answered with %d", code)
	}
	until(t, w, second, func(istio *v1.Istio) error {
		if istio.Status.ActiveRevisionName != "mesh-v1-26-0" {
			return fmt.Errorf("the active revision is %q", istio.Status.ActiveRevisionName)
		}
		return nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

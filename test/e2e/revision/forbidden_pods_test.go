package revision_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/history"
)

// forbiddenPods: an operator that may no longer list pods does not know which revisions are in use, and must not take them
// for unused.
func (w *world) forbiddenPods(t *testing.T) {
	w.keepServing(t)
	config, eyes := rest.CopyConfig(w.Config()), &blindfold{}
	config.Wrap(eyes.over)
	operateWithin(t, config)
	istio, tag := revisionBased("mesh", hubNamespace, "v1.24.0", 0), makeTag("prod", v1.IstioKind, "mesh")
	w.make(t, istio, tag)
	w.points(t, tag, "mesh-v1-24-0")
	old := makeRevision("mesh-v1-24-0", "", "")
	says(t, w, old, v1.ConditionInUse, v1.ReasonReferencedByTag)

	eyes.put(true)
	for _, got := range []metav1.Condition{
		says(t, w, old, v1.ConditionInUse, v1.ReasonUsageCheckFailed), says(t, w, tag, v1.ConditionInUse, v1.ReasonUsageCheckFailed),
	} {
		if got.Status != metav1.ConditionUnknown || !strings.Contains(got.Message, "the API server refuses to list pods") {
			t.Errorf("it says %s: %s", got.Status, got.Message)
		}
	}

	t.Log("upgrades go on, but nothing is pruned")
	revisions := history.Follow[*v1.IstioRevision](t, w, &v1.IstioRevisionList{})
	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Version = "v1.26.0" })
	w.points(t, tag, "mesh-v1-26-0")
	says(t, w, makeRevision("mesh-v1-26-0", "", ""), v1.ConditionInUse, v1.ReasonUsageCheckFailed)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Error(err)
	}

	t.Log("with its eyes open, the operator sees that nobody uses it")
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	w.make(t, shop)
	eyes.put(false)
	w.make(t, makePod(shop.Name, "cart"))
	gone := revisions.First(t, "the deletion of "+old.Name, func(h history.Event[*v1.IstioRevision]) bool {
		return h.Object.Name == old.Name && !h.Object.DeletionTimestamp.IsZero()
	})
	if history.Order(t, gone.Object) < history.Order(t, shop) {
		t.Error("it was pruned while nobody knew who used it")
	}
	says(t, w, tag, v1.ConditionInUse, v1.ReasonNotReferencedByAnything)
	w.delete(t, tag)
	w.delete(t, istio)
}

// blindfold lets the API server seem to refuse to show pods, whether they are asked for or watched.
type blindfold struct {
	mu      sync.Mutex
	on      bool
	watches []io.Closer
}

func (b *blindfold) put(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on = on
	for _, watch := range b.watches {
		_ = watch.Close()
	}
	b.watches = nil
}

func (b *blindfold) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != "/api/v1/pods" {
			return next.RoundTrip(r)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.on {
			const no = `{"apiVersion":"v1","kind":"Status","status":"Failure","code":403,"reason":"Forbidden",` +
				`"message":"pods is forbidden: no","details":{"kind":"pods"}}`
			return &http.Response{
				StatusCode: http.StatusForbidden, Request: r, Body: io.NopCloser(strings.NewReader(no)),
				Header: http.Header{"Content-Type": []string{"application/json"}},
			}, nil
		}
		response, err := next.RoundTrip(r)
		if err == nil {
			b.watches = append(b.watches, response.Body)
		}
		return response, err
	})
}

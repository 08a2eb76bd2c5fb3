package generate

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// TestAwaitTakeover: controllers wait until all is taken over, and then until the cache has it.
func TestAwaitTakeover(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kumav1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	generated := func(by string) []client.Object {
		meta := metav1.ObjectMeta{Namespace: "shop", Name: "cart", Labels: map[string]string{kumav1alpha1.LabelManagedBy: by}}
		return []client.Object{&kumav1alpha1.MeshService{ObjectMeta: meta}, &kumav1alpha1.Dataplane{ObjectMeta: meta}}
	}
	holding := func(objects []client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	stale, fresh := holding(generated("k8s-controller")), holding(generated(kumav1alpha1.ManagedBy))
	for name, cache := range map[string]client.Client{"a Dataplane": stale, "both, not seen at all": holding(nil)} {
		r := &reconciler{cache: cache, live: fresh}
		if has, err := r.hasTakenOver(t.Context()); has || err != nil {
			t.Errorf("without %s: %t, %v", name, has, err)
		}
	}
	r := &reconciler{cache: fresh, live: fresh}
	if has, err := r.hasTakenOver(t.Context()); !has || err != nil {
		t.Errorf("with both: %t, %v", has, err)
	}

	synctest.Test(t, func(t *testing.T) {
		var wait takeover
		if err := wait.await(t.Context(), nil, nil); err != nil {
			t.Errorf("with nothing to take over: %v", err)
		}
		takenOver, done := make(chan struct{}), make(chan error, 1)
		var cached atomic.Bool
		answer := func(context.Context) (bool, error) { return cached.Load(), nil }
		go func() {
			done <- wait.await(t.Context(), takenOver, answer)
		}()
		waits := func(why string) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(done) > 0 {
				t.Fatalf("it does not wait %s", why)
			}
		}
		waits("until all is taken over")
		close(takenOver)
		waits("for the cache")
		cached.Store(true)
		time.Sleep(time.Minute)
		if err := <-done; err != nil {
			t.Error(err)
		}
		cached.Store(false)
		if err := wait.await(t.Context(), takenOver, answer); err != nil {
			t.Errorf("the second time: %v", err)
		}
	})
}

package template

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// discovery counts the kinds that are looked up, and how many at once.
type discovery struct {
	meta.RESTMapper
	all, now, most atomic.Int32
	hold           chan struct{}
}

func (d *discovery) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	d.all.Add(1)
	if now := d.now.Add(1); now > d.most.Load() {
		d.most.Store(now)
	}
	defer d.now.Add(-1)
	if d.hold != nil {
		<-d.hold
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

// boats is a policy that selects kinds that no hub has.
func boats(n int) *policy.Policy {
	p := &policy.Policy{Namespace: "shop", Name: "p"}
	for i := range n {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: fmt.Sprintf("Boat%d", i)})
	}
	return p
}

// Kinds that the hub does not have are looked up once in a while, however often and by however many policies they are selected.
func TestMissingKindsAreRemembered(t *testing.T) {
	h := newHub(t)
	looked := &discovery{}
	h.reconciler.Kinds.mapper = looked
	p := boats(10_000)
	for range 20 {
		if err := h.reconciler.Kinds.ErrorFor(t.Context(), p); err == nil || !strings.HasPrefix(err.Error(), "the hub has no kind Boat0 in example.com/v1") {
			t.Fatalf("got %v", err)
		}
		h.reconciler.templatesOf(t.Context(), p)
	}
	if n := looked.all.Load(); n != policy.MaxKinds {
		t.Errorf("%d kinds are looked up", n)
	}
	h.clock.SetTime(h.clock.Now().Add(missInterval + time.Second))
	_ = h.reconciler.Kinds.ErrorFor(t.Context(), p)
	if n := looked.all.Load(); n != 2*policy.MaxKinds {
		t.Errorf("%d kinds are looked up after a while", n)
	}
}

// The kinds of a policy are looked up a few at a time.
func TestKindsAreLookedUpAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		looked := &discovery{hold: make(chan struct{})}
		h.reconciler.Kinds.mapper = looked
		go func() { _ = h.reconciler.Kinds.ErrorFor(t.Context(), boats(1_000)) }()
		synctest.Wait()
		if most := looked.most.Load(); most != model.MaxConcurrent {
			t.Errorf("%d kinds are looked up at once", most)
		}
		close(looked.hold)
	})
}

// The first lists of kinds are read a few at a time, and a kind that is still to be listed is not listed by a policy.
func TestWatchesStartAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var started, done atomic.Int32
		start := limitStarts(model.MaxConcurrent, func(schema.GroupVersionKind) {
			started.Add(1)
			<-hold
			done.Add(1)
		})
		for range 200 {
			start(deployments)
		}
		synctest.Wait()
		if n := started.Load(); n != model.MaxConcurrent {
			t.Errorf("%d watches start at once", n)
		}
		close(hold)
		synctest.Wait()
		if n := done.Load(); n != 200 {
			t.Errorf("%d watches were started", n)
		}
	})
	h := newHub(t)
	h.reconciler.Kinds.watch = func(schema.GroupVersionKind) {}
	p := &policy.Policy{Namespace: "shop", Name: "p"}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	if all := h.reconciler.templatesOf(t.Context(), p); len(all) > 0 || h.cache.informers > 0 {
		t.Errorf("%v, informers: %d", all, h.cache.informers)
	}
}

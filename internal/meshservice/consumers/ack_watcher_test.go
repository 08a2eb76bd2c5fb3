package consumers

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// asked is a queue that only notes what it is asked for.
type asked struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	meshes []string
}

func (a *asked) AddAfter(request reconcile.Request, _ time.Duration) {
	a.meshes = append(a.meshes, request.Name)
}

func TestOnlyAnswersThatAreWaitedForCount(t *testing.T) {
	cart, pay := model.ProxyID{Mesh: "default", Name: "cart"}, model.ProxyID{Mesh: "default", Name: "pay"}
	elsewhere := model.ProxyID{Mesh: "other", Name: "cart"}
	a, q := &ackWatcher{}, &asked{}
	var changed func(model.ProxyID)
	a.enqueue(func(f func(model.ProxyID)) { changed = f }, q)
	a.watch("default", map[model.ProxyID]bool{cart: true})
	changed(pay)
	changed(elsewhere)
	if len(q.meshes) > 0 {
		t.Errorf("%v were asked for", q.meshes)
	}
	changed(cart)
	a.watch("default", nil)
	changed(cart)
	if len(q.meshes) != 1 || q.meshes[0] != "default" {
		t.Errorf("%v were asked for", q.meshes)
	}
}

func TestAfter(t *testing.T) {
	now := time.Now()
	watched := map[model.ProxyID]bool{{Name: "cart"}: true}
	cases := map[string]struct {
		decision Decision
		want     time.Duration
	}{
		"nothing":               {Decision{}, resyncInterval},
		"sent soon":             {Decision{Unsent: true, RequeueAt: now.Add(time.Hour)}, publishRequeueDelay},
		"answered soon":         {Decision{Watched: watched, RequeueAt: now.Add(time.Hour)}, ackResyncInterval},
		"time is up in a bit":   {Decision{Watched: watched, RequeueAt: now.Add(time.Second)}, time.Second},
		"time was up":           {Decision{RequeueAt: now.Add(-time.Second)}, time.Millisecond},
		"a delay of many hours": {Decision{RequeueAt: now.Add(time.Hour)}, resyncInterval},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := requeueAfter(c.decision, now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

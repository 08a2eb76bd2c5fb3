package rollout

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// process is the controller, from its start until it is killed. It is woken up by nothing but what would wake it up in a
// real cluster: a change of what it watches, and the time that it asked for.
type process struct {
	*api
	reconciler *reconciler
	triggered  bool
	wakes      time.Time
}

func (c *cluster) launch(mayWrite func() bool) {
	a := &api{cluster: c, mayWrite: mayWrite}
	c.process = &process{api: a, triggered: true, reconciler: &reconciler{
		client: a, objects: a, live: a, reader: a, leaders: leader{a}, watchCertificates: func(context.Context) error { return nil }, hashes: c.hashes,
		recorder: recorder{c}, now: func() time.Time { return c.now }, newID: func() string { return testID }, backoff: newFailureBackoff(), freshness: &freshnessCheck{live: a},
	}}
}

// work does all that can be done without time passing, and tells whether the process is alive.
func (p *process) work() bool {
	for range 500 {
		if !p.wakes.IsZero() && !p.now.Before(p.wakes) {
			p.triggered = true
		}
		if !p.triggered {
			return true
		}
		p.triggered, p.wakes = false, time.Time{}
		result, err := p.reconciler.Reconcile(ctrl.LoggerInto(context.Background(), logr.Discard()),
			ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "mz"}})
		switch {
		case p.dead:
			return false
		case err != nil:
			p.t.Fatalf("%s: %v", p.now.Sub(epoch), err)
		case result.RequeueAfter > 0:
			p.wakes = p.now.Add(result.RequeueAfter)
		}
	}
	p.t.Fatalf("%s: it does not come to rest", p.now.Sub(epoch))
	return false
}

// Next is when something happens by itself, the zero time if nothing does.
func (c *cluster) next() time.Time {
	var next time.Time
	if p := c.process; p != nil && !p.dead {
		next = p.wakes
	}
	if len(c.coming) > 0 && (next.IsZero() || c.coming[0].at.Before(next)) {
		next = c.coming[0].at
	}
	return next
}

// pass lets time pass until then, and happen what is due.
func (c *cluster) pass(then time.Time) {
	if then.After(c.now) {
		c.now = then
	}
	for len(c.coming) > 0 && !c.coming[0].at.After(c.now) {
		due := c.coming[0]
		c.coming = c.coming[1:]
		if due.reported != "" {
			c.tell("%s", due.reported)
		}
		due.do()
	}
}

// run lets the cluster and its controller go on until then. A controller that is killed comes back after a while.
func (c *cluster) run(until time.Time, mayWrite func() bool, downtime time.Duration) {
	c.launch(mayWrite)
	for range 10000 {
		if !c.process.work() {
			c.tell("* the operator is killed")
			c.process = nil
			for back := c.now.Add(downtime); c.now.Before(back); {
				then := c.next()
				if then.IsZero() || then.After(back) {
					then = back
				}
				c.pass(then)
			}
			c.tell("* and comes back")
			c.launch(mayWrite)
			continue
		}
		then := c.next()
		if then.IsZero() || then.After(until) {
			return
		}
		c.pass(then)
	}
	c.t.Fatal("it goes on for ever")
}

// recorder tells of events.
type recorder struct{ *cluster }

func (r recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.tell("event    %s %s: %s", strings.ToLower(kind), reason, shortHashes(fmt.Sprintf(note, args...)))
}

var longHash = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{56}\b`)

func shortHashes(text string) string { return longHash.ReplaceAllString(text, "$1...") }

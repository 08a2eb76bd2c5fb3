package adoption

import (
	"strings"
	"testing"
)

// deleteBindings deletes all bindings, as people do.
func (w *world) deleteBindings() {
	for _, key := range sortedKeys(w.bindings) {
		w.deleteBinding(w.bindings[key], "")
	}
}

// A template may be deleted when its binding is gone and not created again yet. Its objects go from the clusters, as they do with a
// template that has a binding.
func TestTemplateDeletedAfterItsBinding(t *testing.T) {
	w := newWorld(t, "east", "west")
	w.template("cart", cartOnHub)
	w.do("a policy", func() { w.policy("adopt", overwrite) })
	w.byPeople = true
	w.deleteBindings()
	w.byPeople = false
	for range maxRounds {
		for _, key := range sortedKeys(w.bindings) {
			w.reconcileBinding(key)
		}
		for _, key := range sortedKeys(w.works) {
			w.reconcileWork(key)
		}
	}
	if len(w.bindings) > 0 {
		t.Fatalf("the binding stays:\n%s", w.log.String())
	}
	w.do("kubectl delete deployment cart, on the hub", func() { clear(w.templates) })
	if end := strings.TrimSpace(w.end()); end != "" {
		t.Errorf("left are\n%s\n%s", end, w.log.String())
	}
}

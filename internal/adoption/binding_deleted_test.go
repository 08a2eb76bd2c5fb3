package adoption

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// A policy is aborted only when the originals of dependencies are restored, too.
func TestAbortWaitsForDependencies(t *testing.T) {
	w := newWorld(t, "east", "west")
	w.runs("west", "settings", settings0)
	w.template("pay", payOnHub)
	w.template("settings", settings)
	w.do("a policy with propagateDeps: true", func() { w.policy("adopt", overwrite).Spec.PropagateDeps = true })
	p := w.policy("adopt", overwrite)
	p.Spec.PropagateDeps, p.Aborted = true, true
	settingsOf := func() (key client.ObjectKey) {
		for k := range w.works {
			if k.Namespace == "karmada-es-west" && strings.HasPrefix(k.Name, "settings-") {
				key = k
			}
		}
		return key
	}
	held := settingsOf()
	// All controllers but that of the Work with the ConfigMap in west, which refuses the write.
	for range maxRounds {
		for key := range w.templates {
			w.reconcileTemplate(key)
		}
		for _, key := range sortedKeys(w.bindings) {
			w.reconcileBinding(key)
		}
		for _, key := range sortedKeys(w.works) {
			if key != held {
				w.reconcileWork(key)
			}
		}
		w.reportPolicy(p)
	}
	if said := w.ready[p.Key()]; !strings.Contains(said, "Aborting") || w.works[held] == nil {
		t.Errorf("before the ConfigMap in west is restored: %s", said)
	}
	w.settle()
	if said := w.ready[p.Key()]; !strings.Contains(said, "Aborted") || len(w.works)+len(w.bindings) > 0 {
		t.Errorf("in the end: %s\n%s", said, w.end())
	}
}

// Who deletes a binding and its Works deletes nothing in the clusters, in whatever order the operator sees that.
func TestWorksDeletedAfterTheirBinding(t *testing.T) {
	w := newWorld(t, "east", "west")
	w.template("cart", cartOnHub)
	w.do("a policy", func() { w.policy("adopt", overwrite) })
	before := w.end()
	w.byPeople = true
	w.deleteBindings()
	w.byPeople = false
	for _, key := range sortedKeys(w.bindings) {
		w.reconcileBinding(key)
	}
	w.do("kubectl delete work, in all clusters", func() {
		for _, key := range sortedKeys(w.works) {
			w.deleteWork(w.works[key])
			w.reconcileWork(key)
		}
	})
	if diff := cmp.Diff(before, w.end()); diff != "" || strings.Contains(w.log.String(), "delete Deployment") {
		t.Errorf("%s\n%s", diff, w.log.String())
	}
}

package generate

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventDedup is what was said last of objects, so that nobody hears it at every look.
type eventDedup struct {
	mu   sync.Mutex
	last map[eventKey]string
}

// eventKey is an object of which something was said.
type eventKey struct {
	kind string
	key  client.ObjectKey
}

func newEventDedup() *eventDedup { return &eventDedup{last: map[eventKey]string{}} }

// isNew says whether something is new about an object. An object with nothing to be said of is forgotten.
func (m *eventDedup) isNew(kind string, object client.Object, text string) bool {
	s := eventKey{kind, client.ObjectKeyFromObject(object)}
	if text == "" {
		m.forget(kind, s.key)
		return false
	}
	text = string(object.GetUID()) + " " + text
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last[s] == text {
		return false
	}
	m.last[s] = text
	return true
}

// forget an object that is gone.
func (m *eventDedup) forget(kind string, key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, eventKey{kind, key})
}

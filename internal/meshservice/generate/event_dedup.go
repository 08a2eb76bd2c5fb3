package generate

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventDedup remembers the last event of objects, so that it is not repeated at every reconcile.
type eventDedup struct {
	mu   sync.Mutex
	last map[eventKey]string
}

// eventKey is the kind and key of an object.
type eventKey struct {
	kind string
	key  client.ObjectKey
}

func newEventDedup() *eventDedup { return &eventDedup{last: map[eventKey]string{}} }

// isNew says whether an event is new for an object. An empty text forgets the object.
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

// forget forgets a deleted object.
func (m *eventDedup) forget(kind string, key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, eventKey{kind, key})
}

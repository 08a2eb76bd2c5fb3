package generate

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory is what was said last of objects, so that nobody hears it at every look.
type memory struct {
	mu   sync.Mutex
	last map[subject]string
}

// subject is an object of which something was said.
type subject struct {
	kind string
	key  client.ObjectKey
}

func newMemory() *memory { return &memory{last: map[subject]string{}} }

// news says whether something is new about an object. An object with nothing to be said of is forgotten.
func (m *memory) news(kind string, object client.Object, text string) bool {
	s := subject{kind, client.ObjectKeyFromObject(object)}
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
func (m *memory) forget(kind string, key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, subject{kind, key})
}

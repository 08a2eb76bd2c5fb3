package registrar

import "sync"

// memory is what was said last of objects, so that nobody hears it at every look.
type memory struct {
	mu   sync.Mutex
	last map[string]string
}

func newMemory() *memory { return &memory{last: map[string]string{}} }

// news says whether something is new about an object. Nothing to say forgets it.
func (m *memory) news(object, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text == "" {
		delete(m.last, object)
		return false
	}
	if m.last[object] == text {
		return false
	}
	m.last[object] = text
	return true
}

package kube

import (
	"maps"
	"sync"
)

// EventDedup has the text of the last event about each subject, so that an event is not repeated at every reconcile.
type EventDedup[K comparable] struct {
	mu   sync.Mutex
	last map[K]string
}

// IsNew tells whether an event about a subject differs from the last one. An empty text forgets the subject.
func (d *EventDedup[K]) IsNew(subject K, text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last[subject] == text {
		return false
	}
	if text == "" {
		delete(d.last, subject)
		return false
	}
	if d.last == nil {
		d.last = map[K]string{}
	}
	d.last[subject] = text
	return true
}

// Forget forgets the subjects that match: an event about one of them is new again.
func (d *EventDedup[K]) Forget(match func(K) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.last, func(subject K, _ string) bool { return match(subject) })
}

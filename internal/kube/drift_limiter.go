package kube

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// DriftLimiter has when drift was corrected lately. A client that keeps changing an object back must not be answered with a
// write each time.
type DriftLimiter[K comparable] struct {
	mu          sync.Mutex
	corrections map[K][]time.Time
}

// Record records a correction, and forgets those before the window.
func (l *DriftLimiter[K]) Record(key K, now time.Time, window time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.corrections == nil {
		l.corrections = map[K][]time.Time{}
	}
	l.corrections[key] = append(Within(l.corrections[key], now, window), now)
}

// Recent are the corrections within a window.
func (l *DriftLimiter[K]) Recent(key K, now time.Time, window time.Duration) []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Within(l.corrections[key], now, window)
}

// Forget forgets the corrections of the keys that match.
func (l *DriftLimiter[K]) Forget(match func(K) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.corrections, func(key K, _ []time.Time) bool { return match(key) })
}

// Prune forgets all corrections before the window.
func (l *DriftLimiter[K]) Prune(now time.Time, window time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.corrections, func(_ K, times []time.Time) bool { return len(Within(times, now, window)) == 0 })
}

// Within are the times that are no older than the window.
func Within(times []time.Time, now time.Time, window time.Duration) []time.Time {
	return slices.DeleteFunc(slices.Clone(times), func(at time.Time) bool { return now.Sub(at) > window })
}

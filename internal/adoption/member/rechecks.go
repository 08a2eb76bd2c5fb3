package member

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Rechecks are the Works of clusters that could not be reached for a while. Until each has been compared with its object once
// more, nobody knows what has become of the objects meanwhile.
type Rechecks struct {
	mu     sync.Mutex
	rounds map[string]*recheck
	// OnFinished is called with a cluster of which no Work is left.
	OnFinished func(cluster string)
}

// recheck has the Works of one cluster that are left.
type recheck struct{ left map[types.NamespacedName]bool }

// Begin returns what to call when the object of a Work has been compared, and what came of it is reported; nil for a Work that is
// not to be compared once more. A comparison that began before the cluster was lost does not count.
func (r *Rechecks) Begin(cluster string, work types.NamespacedName) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	round := r.rounds[cluster]
	if round == nil || !round.left[work] {
		return nil
	}
	return func() {
		if r.remove(cluster, round, work) {
			r.OnFinished(cluster)
		}
	}
}

// remove tells whether it has removed the last Work of the current round.
func (r *Rechecks) remove(cluster string, round *recheck, work types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rounds[cluster] != round || !round.left[work] {
		return false
	}
	delete(round.left, work)
	return len(round.left) == 0
}

// Start has all Works of a cluster compared once more.
func (r *Rechecks) Start(cluster string, works []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rounds == nil {
		r.rounds = map[string]*recheck{}
	}
	round := &recheck{left: map[types.NamespacedName]bool{}}
	for _, work := range works {
		round.left[work] = true
	}
	r.rounds[cluster] = round
}

// state tells whether the Works of a cluster were ever to be compared once more, and which of them are left.
func (r *Rechecks) state(cluster string) (started bool, left []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	round := r.rounds[cluster]
	if round == nil {
		return false, nil
	}
	return true, slices.Collect(maps.Keys(round.left))
}

func (r *Rechecks) forget(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rounds, cluster)
}

package workload

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// relabelling is a move of the label of a namespace.
type relabelling struct {
	to string
	at time.Time
}

// How often a label is moved to the same revision, within what time, before it is left to who sets it back.
const (
	contests      = 3
	contestWithin = time.Hour
)

// contested tells whether somebody sets the label of a namespace back each time that it was moved. Pods that start in
// between would change sides with every turn.
func (w *writer) contested(o Observed, seen inventory.Namespace, step passage.Step) *Refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	turns := 0
	for _, r := range w.relabels[seen.UID] {
		if r.to == step.To && w.now().Sub(r.at) <= contestWithin {
			turns++
		}
	}
	if turns < contests {
		return nil
	}
	return w.refuse(o, seen.UID, choiceOf(seen), time.Time{}, passage.Because(v1.ReasonContested,
		"its label was moved to %s %d times, and somebody sets it back to %s each time; change it where that comes from, such as a manifest in git",
		step.To, turns, step.From))
}

// relabelledTo notes that the label of a namespace was moved.
func (w *writer) relabelledTo(uid types.UID, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relabels[uid] = append(slices.DeleteFunc(w.relabels[uid], func(r relabelling) bool { return r.to != to }), relabelling{to, w.now()})
}

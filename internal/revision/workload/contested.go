package workload

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// relabelRecord is a move of the label of a namespace.
type relabelRecord struct {
	to string
	at time.Time
}

// How often a label is moved to the same revision, within what time, before it is left to who sets it back.
const (
	maxRelabels   = 3
	relabelWindow = time.Hour
)

// contestedRefusal tells whether somebody sets the label of a namespace back each time that it was moved. Pods that start in
// between would change sides with every turn.
func (w *writer) contestedRefusal(o Observed, seen inventory.Namespace, step passage.Step) *Refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	turns := 0
	for _, r := range w.relabels[seen.UID] {
		if r.to == step.To && w.now().Sub(r.at) <= relabelWindow {
			turns++
		}
	}
	if turns < maxRelabels {
		return nil
	}
	return w.recordRefusal(o, seen.UID, choiceOf(seen), time.Time{}, passage.Because(v1.ReasonContested,
		"label was moved to %s %d times, and another client sets it back to %s each time; change the label at its source, such as a manifest in git",
		step.To, turns, step.From))
}

// recordRelabel notes that the label of a namespace was moved.
func (w *writer) recordRelabel(uid types.UID, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relabels[uid] = append(slices.DeleteFunc(w.relabels[uid], func(r relabelRecord) bool { return r.to != to }), relabelRecord{to, w.now()})
}

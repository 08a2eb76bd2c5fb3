package workload

import (
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// Mark is the annotation that records a move on its workload, in the same write that moves it, so that a restarted
// operator knows as much as the one before.
type Mark struct {
	// UID is that of the workload: a mark that was copied to another one says nothing about that.
	UID    types.UID      `json:"uid"`
	Istio  string         `json:"istio"`
	Target string         `json:"target"`
	From   string         `json:"from,omitempty"`
	Action passage.Action `json:"action"`
	// Run is when the migration started that the move is part of.
	Run     time.Time `json:"run"`
	Batch   int       `json:"batch,omitempty"`
	Started time.Time `json:"started"`
	// Generation is that of the workload as the move left it.
	Generation int64 `json:"generation,omitempty"`
	// Retry is the last retry request when this was written. A failed move is retried when there is another.
	Retry string `json:"retry,omitempty"`
	// Failed is when the move failed, and Reason why.
	Failed time.Time       `json:"failed,omitzero"`
	Reason *passage.Reason `json:"reason,omitempty"`
	// Overdue is when later batches stopped waiting for the move, which its annotation gives more time.
	Overdue time.Time `json:"overdue,omitzero"`
	// Done is when the move was observed to be done, for a workload whose status does not report it.
	Done time.Time `json:"done,omitzero"`
}

// markOf reads the mark of a workload. One that cannot be parsed counts as none.
func markOf(w *inventory.Workload) *Mark {
	text, found := w.Annotations[v1.AnnotationMigration]
	if !found {
		return nil
	}
	var mark Mark
	if err := json.Unmarshal([]byte(text), &mark); err != nil || mark.UID != w.UID || mark.Target == "" || mark.Started.IsZero() ||
		!mark.Failed.IsZero() && mark.Reason == nil {
		return nil
	}
	return &mark
}

// markCache keeps the parsed marks of the last plan: between two plans, few of thousands change.
type markCache struct {
	mu    sync.Mutex
	marks map[*inventory.Workload]*Mark
}

// marksOf are the marks of workloads, in their order. A nil cache keeps nothing.
func (r *markCache) marksOf(workloads []*inventory.Workload) []*Mark {
	marks := make([]*Mark, len(workloads))
	if r == nil {
		r = &markCache{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	read := make(map[*inventory.Workload]*Mark, len(r.marks))
	for i, w := range workloads {
		if w.Annotations[v1.AnnotationMigration] == "" {
			continue
		}
		mark, known := r.marks[w]
		if !known {
			mark = markOf(w)
		}
		marks[i], read[w] = mark, mark
	}
	r.marks = read
	return marks
}

func (m Mark) String() string {
	text, err := json.Marshal(m)
	if err != nil {
		// Only a time beyond the year 9999 fails.
		return ""
	}
	return string(text)
}

// failed is the mark of a failed move.
func (m Mark) failed(at time.Time, why passage.Reason) *Mark {
	m.Failed, m.Reason = at, &why
	return &m
}

// done is the mark of a successful move.
func (m Mark) done(at time.Time) *Mark {
	m.Done, m.Failed, m.Reason = at, time.Time{}, nil
	return &m
}

// overdue is the mark of a move that later batches do not wait for.
func (m Mark) overdue(since time.Time) *Mark {
	m.Overdue = since
	return &m
}

// state is the state of a move whose mark records its end, or that it is overdue.
func (m Mark) state() passage.State {
	switch {
	case !m.Failed.IsZero():
		return passage.Failed
	case !m.Overdue.IsZero() && m.Done.IsZero():
		return passage.Running
	}
	return passage.Done
}

package rollout

import (
	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/internal/passage"
)

// The reasons why nothing starts.
const (
	CodeBeingDeleted passage.Code = "BeingDeleted"
	CodeUnknownHash  passage.Code = "UnknownHashVersion"
	CodePaused       passage.Code = "Paused"
)

// gates are the reasons why nothing starts, in the order in which they are checked. Only deletion stops a promotion:
// half-way through, two generations consider themselves the leader.
var gates = []passage.Gate[Observed]{whileBeingDeleted, withUnknownHash, whilePaused}

func whileBeingDeleted(o Observed) *passage.Reason {
	if o.Materialize.DeletionTimestamp.IsZero() {
		return nil
	}
	return passage.Hold(CodeBeingDeleted, "Materialize is being deleted, and its objects with it")
}

func withUnknownHash(o Observed) *passage.Reason {
	if o.UnknownHash == nil || o.Promoting() {
		return nil
	}
	return passage.Hold(CodeUnknownHash, "cannot determine whether the spec has changed: %v", o.UnknownHash)
}

func whilePaused(o Observed) *passage.Reason {
	m := o.Materialize
	if m.Annotations[fairlead.AnnotationPaused] != "true" || o.Promoting() {
		return nil
	}
	return passage.Hold(CodePaused, "paused by annotation %s; resume with `fairlead resume mzs %s -n %s`", fairlead.AnnotationPaused, m.Name, m.Namespace)
}

package passage

// Gate is one condition that must be met before anything starts: it returns why
// it holds, or nil to let the plan pass.
type Gate[In any] func(In) *Reason

// FirstHold asks the gates in order and returns what the first one that holds
// says, or nil when all are open. The list is the documentation: its order is
// the order in which a person would ask.
func FirstHold[In any](in In, gates ...Gate[In]) *Reason {
	for _, gate := range gates {
		if hold := gate(in); hold != nil {
			return hold
		}
	}
	return nil
}

// Hold is what a gate returns when it holds.
func Hold[C ~string](code C, format string, args ...any) *Reason {
	reason := Because(code, format, args...)
	return &reason
}

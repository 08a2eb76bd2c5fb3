package faults

import "os"

// Full tells whether tests are to leave nothing out, however long that takes.
func Full() bool { return os.Getenv("FAIRLEAD_TESTS") == "full" }

// Kills are the ways to die at a write, for stories that take long to tell. To
// die before a write is, to what comes after, the same as to die after the one
// before it: only in full it is both.
func Kills() []Action {
	if Full() {
		return []Action{CutBefore(), CutAfter()}
	}
	return []Action{CutAfter()}
}

// Sample is a Scenario.Pick for stories that take long to tell: it picks the
// first write, the last, those that match, and every nth. In full, it picks all.
func Sample(nth int, match Match) func(k int, writes Log) bool {
	return func(k int, writes Log) bool {
		return Full() || k == 1 || k == len(writes) || k%nth == 0 || match(writes[k-1].Request)
	}
}

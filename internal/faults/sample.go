package faults

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
)

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

// At is a choice for DisturbWrites that calls the writes by their names: by the
// kind, the verb or just "write", and by which of these it is, counted from the
// first ("secrets 1") or from the last ("delete -1", "write -2"). A name that no
// write has fails the test.
func At(t testing.TB, actions map[string][]Action) func(k int, writes Log) []Action {
	left := maps.Clone(actions)
	return func(k int, writes Log) []Action {
		var chosen []Action
		for _, name := range writes.names(k) {
			chosen = append(chosen, actions[name]...)
			delete(left, name)
		}
		if k == len(writes) && len(left) > 0 {
			t.Errorf("there is no write %q among:\n%s", slices.Sorted(maps.Keys(left)), writes)
		}
		return chosen
	}
}

func (l Log) names(k int) []string {
	this := l[k-1]
	var names []string
	for name, same := range map[string]Match{
		this.Kind(): To(this.Kind()),
		this.Verb:   func(r Request) bool { return r.Verb == this.Verb },
		"write":     Any,
	} {
		names = append(names, fmt.Sprint(name, " ", l[:k].Count(same)), fmt.Sprint(name, " -", l[k-1:].Count(same)))
	}
	slices.Sort(names)
	return names
}

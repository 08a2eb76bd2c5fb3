package faults

import (
	"cmp"
	"fmt"
	"strings"
)

// Entry is one write of the process under test and what became of it.
type Entry struct {
	Request
	// Result is the HTTP status, or the words for a write that got none.
	Result string
}

// Log is what a process wrote, in the order in which it asked for it.
type Log []Entry

// Count tells how many writes match.
func (l Log) Count(m Match) int {
	n := 0
	for _, e := range l {
		if m(e.Request) {
			n++
		}
	}
	return n
}

// ByKind counts the writes per resource, keyed by Request.Kind.
func (l Log) ByKind() map[string]int {
	counts := map[string]int{}
	for _, e := range l {
		counts[e.Kind()]++
	}
	return counts
}

// String tells each write on a line of its own, or only the first and the last
// of them when they are very many.
func (l Log) String() string {
	if len(l) == 0 {
		return "  (no writes)"
	}
	const head, tail = 20, 30
	var lines []string
	for i, e := range l {
		if left := len(l) - i; i >= head && left > tail {
			if i == head {
				lines = append(lines, fmt.Sprintf("     (%d more)", left-tail))
			}
			continue
		}
		lines = append(lines, fmt.Sprintf("%3d  %s -> %s", i+1, e.Request, cmp.Or(e.Result, "under way")))
	}
	return strings.Join(lines, "\n")
}

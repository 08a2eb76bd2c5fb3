// Package growth is for benchmarks of what more input costs, as a ratio to what less of it costs in the same run.
package growth

import (
	"syscall"
	"testing"
	"time"
)

// Linear fails a benchmark in which each of many costs more than twice what each of few does: noise of the machine is given as much as
// the growth is. Prepare is not measured, and returns what is. What all of many cost in one round is returned.
func Linear(b *testing.B, few, many int, prepare func(n int) (measured func())) time.Duration {
	b.Helper()
	spent := map[int]time.Duration{}
	for b.Loop() {
		for _, n := range []int{few, many} {
			measured := prepare(n)
			started := ProcessorTime(b)
			measured()
			spent[n] += ProcessorTime(b) - started
		}
	}
	growth, ratio := float64(many)/float64(few), float64(spent[many])/float64(spent[few])
	b.ReportMetric(ratio/growth, "x-time/each")
	if ratio > 2*growth {
		b.Fatalf("%d cost %.1f times as much as %d", many, ratio, few)
	}
	return spent[many] / time.Duration(b.N)
}

// ProcessorTime is what this process has used; the clock on the wall also counts what others do.
func ProcessorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

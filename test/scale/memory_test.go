package scale_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// memory is how much of it, in MiB, a process had while it was watched.
type memory struct {
	// first and last are typical of the first and the last tenth of the time.
	first, last float64
	// peak is the most in that time, and ever the most since the process began: it may have installed control planes before.
	peak, ever float64
}

// growth is by which part of the first there was more, or less, at last.
func (m memory) growth() float64 { return m.last/m.first - 1 }

func (m memory) String() string {
	return fmt.Sprintf("%.0f MiB at first, %.0f MiB at last (%+.1f %%), at most %.0f MiB, %.0f MiB ever",
		m.first, m.last, 100*m.growth(), m.peak, m.ever)
}

const sampleEvery = 200 * time.Millisecond

// watchMemory of a process until it is told to stop. Linux alone tells how much that is.
func watchMemory(ctx context.Context, pid int) (stop func() (memory, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var resident []float64
	var failed error
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for failed == nil {
			var now float64
			if now, failed = memoryOf(pid, "VmRSS"); failed == nil {
				resident = append(resident, now)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() (memory, error) {
		cancel()
		ended.Wait()
		if failed != nil {
			return memory{}, failed
		}
		tenth := (len(resident) + 9) / 10
		ever, err := memoryOf(pid, "VmHWM")
		return memory{
			first: median(resident[:tenth]), last: median(resident[len(resident)-tenth:]), peak: slices.Max(resident), ever: ever,
		}, err
	}
}

func memoryOf(pid int, kind string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(kind + `:\s*(\d+) kB`).FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("process %d tells no %s", pid, kind)
	}
	kibibytes, err := strconv.ParseFloat(string(found[1]), 64)
	return kibibytes / 1024, err
}

// processorTimeOf is what a process has used of it since it began.
func processorTimeOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	// The name of the program, in parentheses, may contain spaces.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatalf("the processor time of process %d: %v", pid, err)
		}
		ticks += time.Duration(n)
	}
	const ticksPerSecond = 100 // of all Linux systems that Go runs on
	return ticks * time.Second / ticksPerSecond
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

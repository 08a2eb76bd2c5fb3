package operator

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// smallHeap is the size up to which a heap may grow before the next collection, as far as the bounds below allow: with less than
	// 16 MiB in use it grows by maxGrowthPercent, and with more than 30 MiB by minGrowthPercent. A collection of a small heap frees
	// little, and in a small cluster that took a fifth of a migration's processor time.
	smallHeap = 48 << 20
	// minGrowthPercent and maxGrowthPercent bound by how much a heap grows between two collections, in percent of what is in use.
	// Go's default is 100; the operator holds much in memory and does little in a large cluster.
	minGrowthPercent, maxGrowthPercent = 60, 200

	tuneInterval = 5 * time.Second
)

// TuneGarbageCollection has the heap of this process grow by much while it is small, and by little when it is large, unless the
// environment says otherwise.
func TuneGarbageCollection(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	growth := heapGrowth(0)
	debug.SetGCPercent(growth)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(tuneInterval):
			}
			metrics.Read(live)
			if next := heapGrowth(live[0].Value.Uint64()); next != growth {
				growth = next
				debug.SetGCPercent(growth)
			}
		}
	}()
}

// heapGrowth is by how much a heap of which so much is in use may grow, in percent of that.
func heapGrowth(live uint64) int {
	if live == 0 {
		return maxGrowthPercent
	}
	free := int64(smallHeap) - int64(live)
	return int(min(maxGrowthPercent, max(minGrowthPercent, free*100/int64(live))))
}

package operator

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// freelyGrown is how far a heap grows before it is collected, however little of it is in use: a collection costs the same
	// for a heap that has grown by little, and in a small cluster that took a fifth of a migration's processor time.
	freelyGrown = 48 << 20
	// leastGrowth and mostGrowth bound by how much a heap grows between two collections, in percent of what is in use. Go's
	// default is 100; the operator holds much in memory and does little in a large cluster.
	leastGrowth, mostGrowth = 60, 200

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
		return mostGrowth
	}
	free := int64(freelyGrown) - int64(live)
	return int(min(mostGrowth, max(leastGrowth, free*100/int64(live))))
}

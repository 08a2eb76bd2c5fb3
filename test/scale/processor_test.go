package scale_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// processors is the processor time that processes have used, by their names.
type processors map[string]time.Duration

// processor is that of the operator, of the components of all clusters, and of the benchmark, which is the bare client.
func (f *fleet) processor(b *testing.B) processors {
	b.Helper()
	all := processors{"operator": processorTimeOf(b, f.operator.Pid()), "client": processorTimeOf(b, os.Getpid())}
	for _, s := range append([]*site{f.site}, f.members...) {
		if s.processes == nil {
			s.processes = s.cluster.Processes(b)
		}
		for component, pid := range s.processes {
			all[s.name+" "+component] = processorTimeOf(b, pid)
		}
	}
	return all
}

// attempt is how long something took, and the processor time that all have used meanwhile.
type attempt struct {
	took time.Duration
	used processors
}

func (f *fleet) measure(b *testing.B, do func() time.Duration) attempt {
	b.Helper()
	before := f.processor(b)
	took := do()
	return attempt{took, f.processor(b).since(before)}
}

// since is what was used since an earlier time.
func (p processors) since(earlier processors) processors {
	used := maps.Clone(p)
	for name, before := range earlier {
		used[name] -= before
	}
	return used
}

func (p processors) total() time.Duration {
	var total time.Duration
	for _, used := range p {
		total += used
	}
	return total
}

// of is what each object took, in all and of the processes that took most.
func (p processors) of(objects float64) string {
	const least = 0.1
	each := func(used time.Duration) float64 { return float64(used) / float64(time.Millisecond) / objects }
	text := fmt.Sprintf("%.1f ms", each(p.total()))
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(p), func(a, b string) int { return cmp.Compare(p[b], p[a]) }) {
		if used := each(p[name]); used >= least {
			parts = append(parts, fmt.Sprintf("%s %.1f", name, used))
		}
	}
	return text + " (" + strings.Join(parts, ", ") + ")"
}

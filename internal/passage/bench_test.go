package passage

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkNext decides in the middle of a migration, as each reconcile does. The
// time per step should be about the same in every size.
func BenchmarkNext(b *testing.B) {
	batching := Batching{Size: 20, Delay: 30 * time.Second}
	for _, size := range []int{200, 2000, 20000} {
		plans := map[string]Plan{"sorted": bigPlan(size, false), "by-name-with-priorities": bigPlan(size, true)}
		for _, name := range []string{"sorted", "by-name-with-priorities"} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				plan := plans[name]
				b.ReportAllocs()
				for b.Loop() {
					Next(plan, batching, at(60))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/step")
			})
		}
	}
}

// bigPlan is half done, with ten of a batch of twenty running.
func bigPlan(size int, priorities bool) Plan {
	var steps []Step
	for i := range size / 10 {
		steps = append(steps, relabel(fmt.Sprintf("n%d", i), state(Done)))
	}
	for i := range size - len(steps) {
		step := deploy(fmt.Sprintf("d%d", i))
		if priorities {
			step.Priority = i * 7919 % 10
		}
		batch := i/20 + 1
		switch last := size / 40; {
		case batch < last:
			done(batch, i/20)(&step)
		case batch == last && i%20 < 10:
			running(batch)(&step)
		case batch == last:
			done(batch, i/20)(&step)
		}
		steps = append(steps, step)
	}
	return planOf(steps)
}

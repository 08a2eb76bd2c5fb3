package usage

import (
	"fmt"
	"testing"
)

// BenchmarkPodEvent should take the same time in every size.
func BenchmarkPodEvent(b *testing.B) {
	for _, size := range []int{200, 2000, 20000} {
		tracker := newTracker()
		pods := tracker.handlers()[kindPod]
		for i := range size {
			pods.OnAdd(makePod(fmt.Sprintf("team-%d", i/20), fmt.Sprintf("cart-%d", i), "", "r1"), true)
		}
		old, moved := makePod("team-1", "cart-20", "", "r1"), makePod("team-1", "cart-20", "", "r2")
		b.Run(fmt.Sprintf("status/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pods.OnUpdate(old, old)
			}
		})
		b.Run(fmt.Sprintf("moved/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pods.OnUpdate(old, moved)
				pods.OnUpdate(moved, old)
			}
		})
	}
}

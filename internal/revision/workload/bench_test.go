package workload

import (
	"fmt"
	"testing"
)

// BenchmarkDecide is what each piece of news costs while workloads move: half of them have.
func BenchmarkDecide(b *testing.B) {
	for _, size := range []int{200, 2000} {
		parts := []part{migrating, batchSize(20)}
		for i := range size {
			in := fmt.Sprintf("team-%04d", i/4)
			state := []option{runs(old, 2)}
			if i < size/2 {
				state = []option{runs(target, 2), moved(i, i/20+1), since("NewReplicaSetAvailable", i+1)}
			}
			parts = append(parts, namespace(in, rev(target)), deploy(fmt.Sprintf("%s/cart-%d", in, i), state...))
		}
		o := observed(parts...)
		o.marks = &markCache{}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := decide(o, at(size)); len(d.Start) != 20 {
					b.Fatalf("%d start: %v", len(d.Start), d.Reason)
				}
			}
		})
	}
}

package operator

import "testing"

func TestHeapGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		live uint64
		want int
	}{
		"before the first collection": {0, maxGrowthPercent},
		"almost nothing":              {1 << 20, maxGrowthPercent},
		"a small cluster":             {20 << 20, 140},
		"half of what is free":        {24 << 20, 100},
		"as much as is free":          {48 << 20, minGrowthPercent},
		"a large cluster":             {1 << 30, minGrowthPercent},
	} {
		t.Run(name, func(t *testing.T) {
			if got := heapGrowth(c.live); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

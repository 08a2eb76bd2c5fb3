package kube

import (
	"testing"
	"time"
)

func TestDriftLimiter(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	const window = time.Minute
	for name, c := range map[string]struct {
		record []int
		then   func(*DriftLimiter[string])
		now    int
		want   int
	}{
		"none":                      {nil, nil, 0, 0},
		"within the window":         {[]int{0, 30, 60}, nil, 60, 3},
		"some before the window":    {[]int{0, 30, 60}, nil, 61, 2},
		"all before the window":     {[]int{0, 30, 60}, nil, 121, 0},
		"forgotten":                 {[]int{0, 30}, func(l *DriftLimiter[string]) { l.Forget(func(key string) bool { return key == "cart" }) }, 30, 0},
		"another one is forgotten":  {[]int{0, 30}, func(l *DriftLimiter[string]) { l.Forget(func(key string) bool { return key == "shop" }) }, 30, 2},
		"pruned within the window":  {[]int{0, 30}, func(l *DriftLimiter[string]) { l.Prune(at(90), window) }, 30, 2},
		"pruned after the window":   {[]int{0, 30}, func(l *DriftLimiter[string]) { l.Prune(at(91), window) }, 30, 0},
		"recorded after the window": {[]int{0, 1, 100}, nil, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var l DriftLimiter[string]
			for _, second := range c.record {
				l.Record("cart", at(second), window)
			}
			if c.then != nil {
				c.then(&l)
			}
			if got := l.Recent("cart", at(c.now), window); len(got) != c.want {
				t.Errorf("%d corrections, want %d: %v", len(got), c.want, got)
			}
		})
	}
}

package main

import (
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	first := &build{packages: []pkg{{"small", "s", 1e6}, {"large", "l", 40e7}, {"both", "b", 99e6}}}
	second := &build{packages: []pkg{{"both", "b", 99e6}, {"other", "o", 301e6}}}
	builds := []*build{first, second}
	countOnce(builds)
	p := newProgress(builds)
	check := func(elapsed time.Duration, want string) {
		t.Helper()
		if got := p.text("it", elapsed, 2); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	p.begin(first)
	check(0, "compiling it: 0 of 4 packages, about 73 min left")
	p.compiled("small")
	check(time.Minute, "compiling it: 1 of 4 packages, about 82 min left")
	check(2*time.Hour, "compiling it: 1 of 4 packages, about 1256 min left") // a machine that hardly gets on
	p.compiled("both")
	check(9*time.Minute, "compiling it: 2 of 4 packages, about 64 min left")
	p.compiled("large")
	p.end()
	check(46*time.Minute, "compiling it: 3 of 4 packages, about 28 min left")
	p.begin(second)
	p.compiled("other")
	p.compiled("not one of these")
	p.end()
	check(73*time.Minute, "compiled it: 4 packages, linking")
	if p.compiledNow != 5 {
		t.Errorf("%d were compiled", p.compiledNow)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1204: "1,204", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}

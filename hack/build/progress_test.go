package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	packages := func(prefix string, n int) (all []pkg) {
		for i := range n {
			name := fmt.Sprint(prefix, i)
			all = append(all, pkg{name, name})
		}
		return all
	}
	both := packages("both", 300)
	first := &build{packages: slices.Concat(packages("first", 2700), both)}
	second := &build{packages: slices.Concat(both, packages("second", 1000))}
	builds := []*build{first, second}
	countOnce(builds)
	p := newProgress(builds)
	compile := func(all []pkg) {
		for _, one := range all {
			p.compiled(one.path)
		}
	}
	check := func(elapsed time.Duration, want string) {
		t.Helper()
		if got := p.text("it", elapsed, 2); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	p.begin(first)
	check(0, "compiling it: 0 of 4,000 packages, about 13 min left")
	check(time.Hour, "compiling it: 0 of 4,000 packages, about 613 min left") // a machine that does not get on
	compile(both)
	check(time.Minute, "compiling it: 300 of 4,000 packages, about 12 min left")
	compile(packages("first", 1700))
	check(6*time.Minute, "compiling it: 2,000 of 4,000 packages, about 6 min left")
	compile(packages("first", 2700)[1700:])
	p.end()
	check(20*time.Minute, "compiling it: 3,000 of 4,000 packages, about 6 min left")
	p.begin(second)
	compile([]pkg{{"not one of these", ""}})
	compile(packages("second", 990))
	p.end()
	check(27*time.Minute, "compiled it: 4,000 packages, linking")
	if p.compiledNow != 300+2700+1+990 {
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

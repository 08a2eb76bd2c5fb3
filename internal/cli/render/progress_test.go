package render

import (
	"bytes"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/passage"
)

func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		bar  bool
		want string
	}{
		"lines": {false, "2 of 4 written\n4 of 4 written\n"},
		"a bar": {true, "\r[#######.......................] 1 of 4 written\033[K" +
			"\r[###############...............] 2 of 4 written\033[K" +
			"\r[######################........] 3 of 4 written\033[K" +
			"\r[##############################] 4 of 4 written\033[K" +
			"\r[##############################] 4 of 4 written\033[K\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			clock := time.Time{}
			m := &Progress{out: &out, noun: "written", total: 4, bar: c.bar, now: func() time.Time { return clock }}
			for done := 1; done <= 4; done++ {
				clock = clock.Add(time.Second)
				m.Show(done)
			}
			m.End()
			if out.String() != c.want {
				t.Errorf("got %q", out.String())
			}
		})
	}
}

func TestBar(t *testing.T) {
	cases := map[string]passage.Counts{
		"[..............................]": {Total: 100, Pending: 100},
		"[#.............................]": {Total: 1000, Done: 1, Pending: 999},
		"[#>!...........................]": {Total: 1000, Done: 1, Running: 1, Failed: 1, Pending: 997},
		"[############################>!]": {Total: 1000, Done: 998, Running: 1, Failed: 1},
		"[##############################]": {Total: 7, Done: 7},
	}
	for want, counts := range cases {
		if got := Bar(counts); got != want {
			t.Errorf("%+v: %s, want %s", counts, got, want)
		}
	}
}

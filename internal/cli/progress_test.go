package cli

import (
	"bytes"
	"testing"
	"time"
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
			m := &progress{out: &out, noun: "written", total: 4, bar: c.bar, now: func() time.Time { return clock }}
			for done := 1; done <= 4; done++ {
				clock = clock.Add(time.Second)
				m.show(done)
			}
			m.end()
			if out.String() != c.want {
				t.Errorf("got %q", out.String())
			}
		})
	}
}

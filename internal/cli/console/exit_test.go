package console

import (
	"errors"
	"testing"
)

func TestExitCode(t *testing.T) {
	cases := map[string]struct {
		err     error
		started bool
		want    int
	}{
		"nothing wrong":            {nil, true, ExitOK},
		"failed":                   {errors.New("x"), true, ExitFailed},
		"before it started":        {errors.New("x"), false, ExitUsage},
		"usage, found out later":   {UsageErrorf("x"), true, ExitUsage},
		"a code of its own, quiet": {ExitError{Code: ExitUnfinished}, true, ExitUnfinished},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ExitCode(c.err, c.started); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

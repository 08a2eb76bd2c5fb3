package wait

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFactor(t *testing.T) {
	for name, c := range map[string]struct {
		set   string
		start time.Duration
		want  float64
	}{
		"no cluster":                {"", 0, 1},
		"a quick machine":           {"", time.Second, 1},
		"a slow machine":            {"", 30 * time.Second, 5},
		"chosen":                    {"2", 30 * time.Second, 2},
		"chosen, less than usual":   {"0.5", 0, 0.5},
		"not a number":              {"very", 12 * time.Second, 2},
		"not a number to wait with": {"-1", 12 * time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := factor(c.set, c.start); got != c.want {
				t.Errorf("factor is %v, want %v", got, c.want)
			}
		})
	}
}

func TestTry(t *testing.T) {
	t.Setenv(Variable, "")
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), 0
		err := Try(t.Context(), func(context.Context) error {
			if tries++; time.Since(began) < never/2 {
				return errors.New("too early")
			}
			return nil
		})
		if err != nil || tries < 2 {
			t.Errorf("after %d tries: %v", tries, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := Try(t.Context(), func(context.Context) error { return errors.New("the pod is not ready") })
		if err == nil || !strings.Contains(err.Error(), "the pod is not ready") || time.Since(began) < never {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		tries, ended := 0, errors.New("the operator has ended")
		err := Try(t.Context(), func(context.Context) error {
			tries++
			return errors.Join(Permanent(ended), errors.New("the pod is not ready"))
		})
		if !errors.Is(err, ended) || tries != 1 {
			t.Errorf("after %d tries: %v", tries, err)
		}
	})
	if err := Permanent(nil); err != nil {
		t.Error(err)
	}
}

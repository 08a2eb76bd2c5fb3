package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/environmentd"
)

// TestDifficultEnvironmentd: promotion survives whatever the next generation does instead of taking over, and until that
// is the leader, what serves is left alone.
func TestDifficultEnvironmentd(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		manner environmentd.Manner
		// meets is what has happened when it has been difficult for long enough.
		meets meets
	}{
		"it is slow": {
			manner: environmentd.Manner{Slow: time.Minute},
			meets:  tells(v1alpha2.ReasonApplying, "environmentd does not answer: nothing is heard within 3s"),
		},
		"it refuses": {
			manner: environmentd.Manner{Refuses: "not on a Friday"},
			meets:  both(tells(v1alpha2.ReasonPromoting, "environmentd refuses: not on a Friday"), asked(2)),
		},
		"it resets connections": {
			manner: environmentd.Manner{Resets: true},
			meets:  tells(v1alpha2.ReasonApplying, "environmentd does not answer: the connection breaks"),
		},
		"it answers garbage": {
			manner: environmentd.Manner{Garbles: true},
			meets:  tells(v1alpha2.ReasonApplying, "in a way that makes no sense (HTTP 200)"),
		},
		"it forgets": {
			manner: environmentd.Manner{Forgets: true},
			meets:  both(tells(v1alpha2.ReasonPromoting, ""), asked(3)),
		},
		"it takes its time": {
			manner: environmentd.Manner{Lingers: true},
			meets:  both(tells(v1alpha2.ReasonPromoting, "it takes over"), asked(1)),
		},
		"it catches up": {
			manner: environmentd.Manner{CatchesUp: true},
			meets:  tells(v1alpha2.ReasonApplying, "it has yet to catch up"),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := theWorld(t)
			e := w.deployed(t)
			next := e.daemon(2)
			next.Behave(c.manner)
			watched := e.watch(t)
			e.edit(t, image("v2"))
			eventually(t, func(ctx context.Context) error {
				m, err := e.get(ctx)
				if err != nil {
					return err
				}
				return c.meets(m, next)
			})
			watched.check(t)
			next.Behave(environmentd.Manner{})
			e.serves(t, 2, "v2")
			watched.check(t)
		})
	}
}

// TestDifficultWhilePromoting: the same after the point of no return.
func TestDifficultWhilePromoting(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		manner environmentd.Manner
		told   string
	}{
		"it becomes slow":          {environmentd.Manner{Lingers: true, Slow: time.Minute}, "nothing is heard within 3s"},
		"it resets connections":    {environmentd.Manner{Lingers: true, Resets: true}, "the connection breaks"},
		"it answers garbage":       {environmentd.Manner{Lingers: true, Garbles: true}, "in a way that makes no sense"},
		"it starts anew, and lags": {environmentd.Manner{Lingers: true, CatchesUp: true}, "it has started anew, and is not ready yet"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := theWorld(t)
			e := w.deployed(t)
			next := e.daemon(2)
			next.Behave(environmentd.Manner{Lingers: true})
			watched := e.watch(t)
			e.edit(t, image("v2"))
			until := func(meets meets) {
				eventually(t, func(ctx context.Context) error {
					m, err := e.get(ctx)
					if err != nil {
						return err
					}
					return meets(m, next)
				})
			}
			until(both(tells(v1alpha2.ReasonPromoting, "it takes over"), asked(1)))
			next.Restart()
			next.Behave(c.manner)
			until(tells(v1alpha2.ReasonPromoting, c.told))
			watched.check(t)
			next.Behave(environmentd.Manner{})
			e.serves(t, 2, "v2")
			watched.check(t)
			if got := len(next.Asked()); got < 2 {
				t.Errorf("it forgot, and was asked to take over %d times", got)
			}
		})
	}
}

type meets = func(*v1alpha2.Materialize, *environmentd.Environmentd) error

// tells: the condition has a reason, and these words in its message.
func tells(reason v1alpha2.Reason, words string) meets {
	return func(m *v1alpha2.Materialize, _ *environmentd.Environmentd) error {
		if c := condition(m); c.Reason != string(reason) || !strings.Contains(c.Message, words) {
			return fmt.Errorf("want %s with %q, got %s: %s", reason, words, c.Reason, c.Message)
		}
		return nil
	}
}

// asked: it was asked to take over so many times.
func asked(times int) meets {
	return func(_ *v1alpha2.Materialize, e *environmentd.Environmentd) error {
		asked := slices.DeleteFunc(e.Asked(), func(what string) bool { return what != "promote" })
		if len(asked) < times {
			return fmt.Errorf("asked to take over %d times, want %d", len(asked), times)
		}
		return nil
	}
}

func both(a, b meets) meets {
	return func(m *v1alpha2.Materialize, e *environmentd.Environmentd) error {
		return errors.Join(a(m, e), b(m, e))
	}
}

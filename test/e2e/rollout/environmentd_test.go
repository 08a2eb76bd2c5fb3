package rollout_test

import (
	"testing"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/environmentd"
)

// TestDifficultEnvironmentd: the active generation is left alone when the next one sends invalid responses, or forgets
// requests, before and after the point of no return.
func TestDifficultEnvironmentd(t *testing.T) {
	t.Parallel()
	e := theWorld(t).deployed(t)
	next := e.daemon(2)
	next.Behave(environmentd.Manner{Garbles: true})
	untouched := e.watch(t)
	e.edit(t, image("v2"))
	e.meets(t, tells(v1alpha2.ReasonApplying, "sends an invalid response to /api/leader/status (HTTP 200)"))
	next.Behave(environmentd.Manner{Forgets: true})
	e.meets(t, tells(v1alpha2.ReasonPromoting, ""), asked(2, 3))
	next.Behave(environmentd.Manner{Lingers: true})
	e.meets(t, tells(v1alpha2.ReasonPromoting, "environmentd is taking over leadership"))
	next.Behave(environmentd.Manner{Lingers: true, Resets: true})
	e.meets(t, tells(v1alpha2.ReasonPromoting, "connection reset"))
	next.Behave(environmentd.Manner{Lingers: true, Garbles: true})
	e.meets(t, tells(v1alpha2.ReasonPromoting, "sends an invalid response"))
	untouched.check(t)
	next.Behave(environmentd.Manner{})
	e.serves(t, 2, "v2")
	untouched.check(t)
}

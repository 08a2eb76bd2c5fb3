package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/hash"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// Forecast is whether a spec makes an environment roll out, and which fields cause that.
type Forecast struct {
	RollsOut bool `json:"rollsOut"`
	// Verdict is the forecast in one line.
	Verdict string `json:"verdict"`
	// Changes of fields are those from the active generation if they roll out, and else from the current spec.
	Changes []hash.Change `json:"changes"`
	// Obstacle is what keeps the operator from creating all objects that the spec requires. Empty: none is known.
	Obstacle string `json:"obstacle,omitempty"`
	// proposed is about a spec that is not applied yet.
	proposed bool
}

// NewForecast is about a proposed spec, or about the current one if none is proposed.
func NewForecast(o Observed, proposed *v1alpha2.Materialize, now time.Time) *Forecast {
	f := &Forecast{Changes: []hash.Change{}, proposed: proposed != nil}
	to := o
	if proposed != nil {
		to = o.WithSpec(proposed)
	}
	if missing := objects.WithoutCertManager(to.Materialize.Spec); o.NoCertManager && missing != nil {
		f.Obstacle = missing.Error()
	}
	if to.UnknownHash != nil {
		f.Verdict = "cannot determine whether there is a rollout: " + to.UnknownHash.Error()
		return f
	}
	serves, reached := to.Active(), to.Completed()
	if to.Promoting() {
		serves, reached = to.Next(), to.Requested()
	}
	f.RollsOut = to.Hash != reached
	from := specOf(o, serves, reached)
	if serves == nil && proposed != nil {
		// Before the first rollout, there is only the current spec to compare with.
		from = o.Materialize
	}
	if from != nil && f.RollsOut {
		rolls, _ := hash.Changes(from, to.Materialize)
		f.Changes = append(f.Changes, rolls...)
	}
	if proposed != nil {
		_, doesNot := hash.Changes(o.Materialize, proposed)
		f.Changes = append(f.Changes, doesNot...)
	}
	if refused := to.Refused(); refused != nil && f.RollsOut {
		f.RollsOut, f.Verdict = false, "no rollout: "+refused.Error()
		if to.Promoting() {
			f.Verdict = fmt.Sprintf("no rollout after the one of generation %d: %v", to.Next().Number, refused)
		}
		return f
	}
	f.RollsOut = f.RollsOut && !to.Expired(now)
	f.Verdict = f.verdict(o, to, now)
	return f
}

// specOf is what a generation was created from, nil if unknown.
func specOf(o Observed, g *Generation, reached string) *v1alpha2.Materialize {
	switch {
	case g != nil && g.Record != nil:
		return g.Record.Materialize
	case g != nil && o.Hash == reached:
		return o.Materialize
	}
	return nil
}

// HasChanges tells whether the proposed spec differs from the current one.
func (f *Forecast) HasChanges() bool { return f.proposed && len(f.Changes) > 0 }

func (f *Forecast) verdict(from, to Observed, now time.Time) string {
	active, next := to.Active(), to.Next().Number
	underway := from.Hash != to.Completed()
	made := from.Generations[next] != nil
	switch {
	case to.Promoting() && f.RollsOut:
		return fmt.Sprintf("rollout: generation %d follows when the promotion of generation %d is complete, because %s", next+1, next, f.rolloutCause(next))
	case to.Promoting():
		return fmt.Sprintf("no further rollout: generation %d is being promoted, which cannot be aborted", next) + f.otherChanges()
	case to.Expired(now):
		return fmt.Sprintf("no rollout: the rollout of generation %d timed out and was cancelled", next)
	case active == nil && (!f.proposed || !underway || from.Hash == to.Hash):
		return "rollout: generation 1 is the first"
	case f.RollsOut && f.proposed && from.Hash == to.Hash:
		return fmt.Sprintf("rollout: the rollout of generation %d continues unchanged%s", next, f.otherChanges())
	case active == nil:
		return "rollout: generation 1, which is the first, is created again, because " + f.rolloutCause(1)
	case f.RollsOut && f.proposed && underway && made:
		return fmt.Sprintf("rollout: a new generation %d replaces the existing one, because %s", next, f.rolloutCause(active.Number))
	case f.RollsOut:
		return fmt.Sprintf("rollout: generation %d follows generation %d, because %s", next, active.Number, f.rolloutCause(active.Number))
	case f.proposed && underway && !made:
		return fmt.Sprintf("no rollout: generation %d serves this spec", active.Number)
	case f.proposed && underway:
		return fmt.Sprintf("no rollout: generation %d serves this spec, and generation %d is removed", active.Number, next)
	case f.proposed && len(f.Changes) > 0:
		return "no rollout: only " + joinChanged(f.Changes)
	case f.proposed:
		return "no rollout: nothing changed"
	}
	return fmt.Sprintf("no rollout: generation %d serves the current spec", active.Number)
}

// rolloutCause names the fields that cause the rollout.
func (f *Forecast) rolloutCause(serves int64) string {
	rolls := slices.DeleteFunc(slices.Clone(f.Changes), func(c hash.Change) bool { return !c.RollsOut })
	if len(rolls) == 0 {
		return fmt.Sprintf("the spec differs from that of generation %d, which has no record", serves)
	}
	return joinChanged(rolls)
}

// otherChanges names the changed fields if none of them rolls out.
func (f *Forecast) otherChanges() string {
	if len(f.Changes) == 0 || slices.ContainsFunc(f.Changes, func(c hash.Change) bool { return c.RollsOut }) {
		return ""
	}
	return ", and only " + joinChanged(f.Changes)
}

// maxFieldNames is how many fields a verdict names. The changes have them all.
const maxFieldNames = 3

func joinChanged(changes []hash.Change) string {
	var names []string
	for _, c := range changes {
		names = append(names, c.Field)
	}
	switch more := len(names) - maxFieldNames; {
	case more == 1:
		names = append(names[:maxFieldNames], "1 more field")
	case more > 1:
		names = append(names[:maxFieldNames], fmt.Sprintf("%d more fields", more))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0] + " changed"
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " changed"
}

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
	Verdict string        `json:"verdict"`
	Changes []FieldChange `json:"changes"`
	// Obstacle is what keeps the operator from creating all objects that the spec requires. Empty: none is known.
	Obstacle string `json:"obstacle,omitempty"`
	// proposed is about a spec that is not applied yet.
	proposed bool
}

// FieldChange is a field that differs: from the active generation if it rolls out, and else from the current spec.
type FieldChange struct {
	Field    string `json:"field"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	RollsOut bool   `json:"rollsOut"`
}

// NewForecast is about a proposed spec, or about the current one if none is proposed.
func NewForecast(o Observed, proposed *v1alpha2.Materialize, now time.Time) *Forecast {
	f := &Forecast{Changes: []FieldChange{}, proposed: proposed != nil}
	to, err := o, error(nil)
	if proposed != nil {
		to, err = o.WithSpec(proposed)
	}
	if err == nil && o.NoCertManager {
		if missing := objects.WithoutCertManager(to.Materialize.Spec); missing != nil {
			f.Obstacle = missing.Error()
		}
	}
	if err == nil {
		err = to.UnknownHash
	}
	if err != nil {
		f.Verdict = "cannot determine whether there is a rollout: " + err.Error()
		return f
	}
	s := to.Summary(now)
	serves, reached := s.Active, s.Completed
	if s.Promoting {
		serves, reached = s.Next, s.Requested
	}
	f.RollsOut = to.Hash != reached
	from := specOf(o, serves, reached)
	if serves == nil && proposed != nil {
		// Before the first rollout, there is only the current spec to compare with.
		from = o.Materialize
	}
	if from != nil && f.RollsOut {
		rolls, _ := hash.Changes(from, to.Materialize)
		f.addChanges(rolls, true)
	}
	if proposed != nil {
		_, doesNot := hash.Changes(o.Materialize, proposed)
		f.addChanges(doesNot, false)
	}
	if s.Refused != nil && f.RollsOut {
		f.RollsOut, f.Verdict = false, "no rollout: "+s.Refused.Error()
		if s.Promoting {
			f.Verdict = fmt.Sprintf("no rollout after the one of generation %d: %v", s.Next.Number, s.Refused)
		}
		return f
	}
	f.RollsOut = f.RollsOut && !s.Expired
	f.Verdict = f.verdict(o, to, s)
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

func (f *Forecast) addChanges(changes []hash.Change, rollsOut bool) {
	for _, c := range changes {
		f.Changes = append(f.Changes, FieldChange{Field: c.Field, From: c.From, To: c.To, RollsOut: rollsOut})
	}
}

func (f *Forecast) verdict(from, to Observed, s Summary) string {
	next := s.Next.Number
	underway := from.Hash != s.Completed
	made := from.Generations[next] != nil
	switch {
	case s.Promoting && f.RollsOut:
		return fmt.Sprintf("rollout: generation %d follows when the promotion of generation %d is complete, because %s", next+1, next, f.rolloutCause(next))
	case s.Promoting:
		return fmt.Sprintf("no further rollout: generation %d is being promoted, which cannot be aborted", next) + f.otherChanges()
	case s.Expired:
		return fmt.Sprintf("no rollout: the rollout of generation %d timed out and was cancelled", next)
	case s.Active == nil && (!f.proposed || !underway || from.Hash == to.Hash):
		return "rollout: generation 1 is the first"
	case f.RollsOut && f.proposed && from.Hash == to.Hash:
		return fmt.Sprintf("rollout: the rollout of generation %d continues unchanged%s", next, f.otherChanges())
	case s.Active == nil:
		return "rollout: generation 1, which is the first, is created again, because " + f.rolloutCause(1)
	case f.RollsOut && f.proposed && underway && made:
		return fmt.Sprintf("rollout: a new generation %d replaces the existing one, because %s", next, f.rolloutCause(s.Active.Number))
	case f.RollsOut:
		return fmt.Sprintf("rollout: generation %d follows generation %d, because %s", next, s.Active.Number, f.rolloutCause(s.Active.Number))
	case f.proposed && underway && !made:
		return fmt.Sprintf("no rollout: generation %d serves this spec", s.Active.Number)
	case f.proposed && underway:
		return fmt.Sprintf("no rollout: generation %d serves this spec, and generation %d is removed", s.Active.Number, next)
	case f.proposed && len(f.Changes) > 0:
		return "no rollout: only " + joinChanged(f.Changes)
	case f.proposed:
		return "no rollout: nothing changed"
	}
	return fmt.Sprintf("no rollout: generation %d serves the current spec", s.Active.Number)
}

// rolloutCause names the fields that cause the rollout.
func (f *Forecast) rolloutCause(serves int64) string {
	rolls := slices.DeleteFunc(slices.Clone(f.Changes), func(c FieldChange) bool { return !c.RollsOut })
	if len(rolls) == 0 {
		return fmt.Sprintf("the spec differs from that of generation %d, which has no record", serves)
	}
	return joinChanged(rolls)
}

// otherChanges names the changed fields if none of them rolls out.
func (f *Forecast) otherChanges() string {
	if len(f.Changes) == 0 || slices.ContainsFunc(f.Changes, func(c FieldChange) bool { return c.RollsOut }) {
		return ""
	}
	return ", and only " + joinChanged(f.Changes)
}

// maxFieldNames is how many fields a verdict names. The changes have them all.
const maxFieldNames = 3

func joinChanged(changes []FieldChange) string {
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

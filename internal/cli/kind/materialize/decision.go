package materialize

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

// rolloutDecision is whether a spec makes an environment roll out, and what makes it so.
type rolloutDecision struct {
	RollsOut bool `json:"rollsOut"`
	// Verdict is that in one line.
	Verdict string        `json:"verdict"`
	Changes []fieldChange `json:"changes"`
	// Obstacle is what keeps the operator from making all that the spec asks for. Empty: nothing is known of.
	Obstacle string `json:"obstacle,omitempty"`
	// proposed is about a spec that is not there yet.
	proposed bool
}

// fieldChange is a field that is another one: than what serves, if it rolls out, or else than what the spec says now.
type fieldChange struct {
	Field    string `json:"field"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	RollsOut bool   `json:"rollsOut"`
}

// decideRollout judges a spec that is proposed, or the one that is there.
func decideRollout(o rollout.Observed, proposed *v1alpha2.Materialize, now time.Time) *rolloutDecision {
	m, to := o.Materialize, o
	if proposed != nil {
		m = proposed
		var err error
		if to, err = o.WithSpec(proposed); err != nil {
			return &rolloutDecision{Verdict: "cannot determine whether there is a rollout: " + err.Error(), Changes: []fieldChange{}, proposed: true}
		}
	}
	if to.UnknownHash != nil {
		return &rolloutDecision{Verdict: "cannot determine whether there is a rollout: " + to.UnknownHash.Error(), Changes: []fieldChange{}, proposed: proposed != nil}
	}
	s := to.Summary(now)
	serves, reached := s.Active, s.Completed
	if s.Promoting {
		serves, reached = s.Next, s.Requested
	}
	v := &rolloutDecision{RollsOut: to.Hash != reached, Changes: []fieldChange{}, proposed: proposed != nil}
	from := specOf(o, serves, reached)
	if serves == nil && proposed != nil {
		// Before the first, what is there is all that there is to compare with.
		from = o.Materialize
	}
	if from != nil && v.RollsOut {
		rolls, _ := hash.Changes(from, m)
		v.addChanges(rolls, true)
	}
	if proposed != nil {
		_, doesNot := hash.Changes(o.Materialize, proposed)
		v.addChanges(doesNot, false)
	}
	if s.Refused != nil && v.RollsOut {
		v.RollsOut, v.Verdict = false, "no rollout: "+s.Refused.Error()
		if s.Promoting {
			v.Verdict = fmt.Sprintf("no rollout after that of generation %d: %v", s.Next.Number, s.Refused)
		}
		return v
	}
	v.RollsOut = v.RollsOut && !s.Expired
	v.Verdict = v.summarize(o, to, s)
	return v
}

// specOf is what a generation was made from, nil where nobody knows.
func specOf(o rollout.Observed, g *rollout.Generation, reached string) *v1alpha2.Materialize {
	switch {
	case g != nil && g.Record != nil:
		return g.Record.Materialize
	case g != nil && o.Hash == reached:
		return o.Materialize
	}
	return nil
}

// hasChanges tells whether something would be applied that is not there yet.
func (v *rolloutDecision) hasChanges() bool { return v.proposed && len(v.Changes) > 0 }

func (v *rolloutDecision) addChanges(changes []hash.Change, rollsOut bool) {
	for _, c := range changes {
		v.Changes = append(v.Changes, fieldChange{Field: c.Field, From: c.From, To: c.To, RollsOut: rollsOut})
	}
}

func (v *rolloutDecision) summarize(from, to rollout.Observed, s rollout.Summary) string {
	next := s.Next.Number
	underway := from.Hash != s.Completed
	made := from.Generations[next] != nil
	switch {
	case s.Promoting && v.RollsOut:
		return fmt.Sprintf("rollout: generation %d follows when the promotion of generation %d is complete, because %s", next+1, next, v.rolloutCause(next))
	case s.Promoting:
		return fmt.Sprintf("no further rollout: generation %d is being promoted, and nothing stops that any more", next) + v.otherChanges()
	case s.Expired:
		return fmt.Sprintf("no rollout: that of generation %d took too long, and was cancelled", next)
	case s.Active == nil && (!v.proposed || !underway || from.Hash == to.Hash):
		return "rollout: generation 1 is the first"
	case v.RollsOut && v.proposed && from.Hash == to.Hash:
		return fmt.Sprintf("rollout: that of generation %d goes on as it is%s", next, v.otherChanges())
	case s.Active == nil:
		return "rollout: generation 1, which is the first, is made anew, because " + v.rolloutCause(1)
	case v.RollsOut && v.proposed && underway && made:
		return fmt.Sprintf("rollout: a clean generation %d takes the place of the one that is there, because %s", next, v.rolloutCause(s.Active.Number))
	case v.RollsOut:
		return fmt.Sprintf("rollout: generation %d follows generation %d, because %s", next, s.Active.Number, v.rolloutCause(s.Active.Number))
	case v.proposed && underway && !made:
		return fmt.Sprintf("no rollout: this is what generation %d serves", s.Active.Number)
	case v.proposed && underway:
		return fmt.Sprintf("no rollout: this is what generation %d serves, and generation %d is taken back", s.Active.Number, next)
	case v.proposed && len(v.Changes) > 0:
		return "no rollout: only " + joinChanged(v.Changes)
	case v.proposed:
		return "no rollout: nothing changed"
	}
	return fmt.Sprintf("no rollout: generation %d serves the current spec", s.Active.Number)
}

// cause are the fields that make a rollout.
func (v *rolloutDecision) rolloutCause(serves int64) string {
	var rolls []fieldChange
	for _, c := range v.Changes {
		if c.RollsOut {
			rolls = append(rolls, c)
		}
	}
	if len(rolls) == 0 {
		return fmt.Sprintf("the spec is another one than that of generation %d, of which no record is left", serves)
	}
	return joinChanged(rolls)
}

// otherChanges are the fields that change as well.
func (v *rolloutDecision) otherChanges() string {
	for _, c := range v.Changes {
		if c.RollsOut {
			return ""
		}
	}
	if len(v.Changes) == 0 {
		return ""
	}
	return ", and only " + joinChanged(v.Changes)
}

// maxFieldNames is how many fields a sentence can have. The table under it has them all.
const maxFieldNames = 3

func joinChanged(changes []fieldChange) string {
	var names []string
	for _, c := range changes {
		names = append(names, c.Field)
	}
	if more := len(names) - maxFieldNames; more > 0 {
		return fmt.Sprintf("%s and %s changed", strings.Join(names[:maxFieldNames], ", "), render.Count(more, "more field"))
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last] + " changed"
	}
	return names[0] + " changed"
}

func printDecision(w io.Writer, format render.Format, v *rolloutDecision) {
	if v == nil {
		return
	}
	line := v.Verdict
	if width := format.Width(); width > 0 {
		line = strings.Join(render.Wrap(line, width), "\n")
	}
	fmt.Fprintln(w, line)
	render.Note(w, v.Obstacle)
	printChanges(w, format, v.Changes)
	fmt.Fprintln(w)
}

// printChanges shows the fields that roll out apart from the others.
func printChanges(w io.Writer, format render.Format, changes []fieldChange) {
	for _, rollsOut := range []bool{true, false} {
		var rows [][]string
		for _, c := range changes {
			if c.RollsOut == rollsOut {
				rows = append(rows, []string{c.Field, render.OrDash(c.From), render.OrDash(c.To)})
			}
		}
		if len(rows) > 0 {
			fmt.Fprintln(w)
			title := map[bool]string{true: "ROLLS OUT", false: "APPLIED AT ONCE"}[rollsOut]
			render.Table(w, format.Width(), []string{title, "FROM", "TO"}, rows)
		}
	}
}

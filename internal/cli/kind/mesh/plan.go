package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/forecast"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// plan is what becomes of the consumers of a Mesh.
type plan struct {
	render.PlanReport
	Mesh *forecast.Forecast `json:"mesh,omitempty"`
}

func newPlan(f forecast.Forecast) *plan { return &plan{render.PlanReport{Plan: f.Plan()}, &f} }

func (p *plan) Print(w io.Writer, format render.Format) { printForecast(w, format, *p.Mesh) }

// Plan tells what a mode of a Mesh, or switching consumers over, changes for the consumers.
func (k *Kind) Plan(ctx context.Context, r connect.Resource) (render.Plan, error) {
	state, err := forecast.Load(ctx, r.Cluster.Client, r.Key.Name, k.zone)
	if err != nil {
		return nil, r.NotFoundOr(err)
	}
	scenario := forecast.Scenario{Mode: modes[strings.ToLower(k.mode)], Consumers: k.consumers, AllConsumers: k.switched}
	if scenario.Mode == "" {
		scenario.Mode = model.Mode(state.Mesh.Mode())
	}
	f, err := forecast.Compare(state, scenario)
	if unknown := (forecast.UnknownConsumerError{}); errors.As(err, &unknown) {
		return nil, console.UsageErrorf("%v; give --consumer some of %s", err, joinSome(unknown.Known))
	}
	if err != nil {
		return nil, err
	}
	return newPlan(f), nil
}

func printForecast(w io.Writer, format render.Format, f forecast.Forecast) {
	render.Paragraph(w, summarizeMesh(f))
	for _, g := range f.Groups {
		fmt.Fprintln(w)
		printGroup(w, format, g)
	}
	printFindings(w, format, "ROUTE TO LOOK AT", f.Routes)
	printFindings(w, format, "PROBLEM", f.Problems)
	for _, note := range f.Notes {
		render.Note(w, note)
	}
}

// summarizeMesh is the forecast in a few words.
func summarizeMesh(f forecast.Forecast) string {
	line := fmt.Sprintf("Mesh %s from %s to %s", f.Mesh, f.From, f.To)
	if f.From == f.To {
		line = fmt.Sprintf("Mesh %s in mode %s", f.Mesh, f.To)
	}
	if n := len(f.Switched); n > 0 {
		line += fmt.Sprintf(", with %s switched over", render.Count(n, "more consumer"))
	}
	line += fmt.Sprintf(", seen from zone %s: %s to make, %d to remove.", f.Zone, render.Count(len(f.Made), "MeshService"), len(f.Removed))
	if f.Consumers == 0 {
		return line + " It has no consumers."
	}
	affected := consumersWith(f, func(forecast.Group) bool { return true })
	if affected == 0 {
		return line + fmt.Sprintf(" Nothing changes for any of %s.", render.Count(f.Consumers, "consumer"))
	}
	moved := consumersWith(f, func(g forecast.Group) bool { return g.Moved() > 0 })
	lost := consumersWith(f, func(g forecast.Group) bool { return g.Lost() > 0 })
	line += fmt.Sprintf(" Changes for %d of %s", affected, render.Count(f.Consumers, "consumer"))
	if moved+lost == 0 {
		return line + "; their current destinations stay the same."
	}
	var parts []string
	if moved > 0 {
		parts = append(parts, fmt.Sprintf("other zones or destinations for %d", moved))
	}
	if lost > 0 {
		parts = append(parts, fmt.Sprintf("a lost destination for %d", lost))
	}
	return line + ": " + strings.Join(parts, ", ") + "."
}

// consumersWith counts the consumers that are in a group of which something holds.
func consumersWith(f forecast.Forecast, holds func(forecast.Group) bool) int {
	names := map[string]bool{}
	for _, g := range f.Groups {
		for _, c := range g.Consumers {
			if holds(g) {
				names[c.Name] = true
			}
		}
	}
	return len(names)
}

func printGroup(w io.Writer, format render.Format, g forecast.Group) {
	var names []string
	shown, more := render.Limit(format, g.Consumers)
	for _, c := range shown {
		names = append(names, fmt.Sprintf("%s (%s)", c.Name, render.Count(c.Proxies, "proxy")))
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	fmt.Fprintln(w, format.Fit(strings.Join(names, ", ")))
	lines, more := render.Limit(format, append(changeLines(g.Changes), policyLines(g.Policies)...))
	for _, line := range lines {
		printItem(w, format, line)
	}
	render.PrintMore(w, "  ", more)
}

// printItem prints a mark and what it is for, further lines under the first.
func printItem(w io.Writer, format render.Format, text string) {
	mark, text, _ := strings.Cut(text, " ")
	lines := []string{text}
	if width := format.Width(); width > 0 {
		lines = render.Wrap(text, width-4)
	}
	fmt.Fprintf(w, "  %s %s\n", mark, strings.Join(lines, "\n    "))
}

// changeLines tell of listeners that change alike in one line.
func changeLines(changes []forecast.Change) []string {
	var lines, ends []string
	dialled := map[string][]string{}
	for _, c := range changes {
		end := changeText(c)
		if dialled[end] == nil {
			ends = append(ends, end)
		}
		dialled[end] = append(dialled[end], c.Name)
	}
	for _, end := range ends {
		mark, text, _ := strings.Cut(end, " ")
		lines = append(lines, fmt.Sprintf("%s %s%s", mark, strings.Join(withoutPorts(dialled[end]), ", "), text))
	}
	return lines
}

// withoutPorts leaves out a hostname that is there with its port.
func withoutPorts(dialled []string) []string {
	return slices.DeleteFunc(slices.Clone(dialled), func(name string) bool {
		return slices.ContainsFunc(dialled, func(other string) bool {
			rest, found := strings.CutPrefix(other, name+":")
			return found && !strings.Contains(rest, ":")
		})
	})
}

// hostnames are those among what is dialled, or else all of it.
func hostnames(dialled []string) []string {
	names := slices.DeleteFunc(withoutPorts(dialled), func(name string) bool {
		_, err := netip.ParseAddrPort(name)
		return err == nil
	})
	if len(names) == 0 {
		return dialled
	}
	return names
}

// changeText is what becomes of something, with a mark before it and without its name.
func changeText(c forecast.Change) string {
	switch {
	case c.Kind == forecast.Cluster && c.Action == forecast.Appears:
		return fmt.Sprintf("+ : new cluster, answers from %s (%s)", zonesText(c.To), render.Count(len(c.To.Endpoints), "endpoint"))
	case c.Kind == forecast.Cluster && c.Action == forecast.Disappears:
		return fmt.Sprintf("- : cluster is gone, answered from %s (%s)", zonesText(c.From), render.Count(len(c.From.Endpoints), "endpoint"))
	case c.Action == forecast.Appears:
		return fmt.Sprintf("+ : new, leads to %s, answers from %s", strings.Join(c.To.Destinations, " and "), zonesText(c.To))
	case c.Action == forecast.Disappears:
		return fmt.Sprintf("- : is gone, led to %s, answered from %s", strings.Join(c.From.Destinations, " and "), zonesText(c.From))
	}
	var parts []string
	if text := zoneChange(c); text != "" {
		parts = append(parts, text)
	}
	mark, settings := "~ : ", "timeouts, retries or rules are others"
	if c.Kind == forecast.Cluster {
		mark, settings = "~ : cluster ", "limits, timeouts or balancing are others"
		parts = append(parts, endpointChanges(c.From, c.To, "without")...)
		parts = append(parts, endpointChanges(c.To, c.From, "with")...)
	} else if !slices.Equal(c.From.Destinations, c.To.Destinations) {
		parts = append(parts, fmt.Sprintf("leads to %s -> %s", strings.Join(c.From.Destinations, " and "), strings.Join(c.To.Destinations, " and ")))
	}
	if c.Settings {
		parts = append(parts, settings)
	}
	return mark + strings.Join(parts, "; ")
}

// endpointChanges are the endpoints of one side that the other side does not have.
func endpointChanges(side, other *forecast.Side, preposition string) []string {
	var parts []string
	for _, e := range side.Endpoints {
		if !slices.Contains(other.Endpoints, e) {
			parts = append(parts, fmt.Sprintf("%s endpoint %s of %s", preposition, e.Address, e.Zone))
		}
	}
	return parts
}

// zoneChange tells from where answers come then, if that is from elsewhere.
func zoneChange(c forecast.Change) string {
	from, to := zonesText(c.From), zonesText(c.To)
	if from == to {
		return ""
	}
	if len(c.To.Zones) == 1 && len(c.To.Fallback) == 0 && slices.Contains(c.From.Zones, c.To.Zones[0]) {
		to += " only"
	}
	return fmt.Sprintf("answers from %s -> %s", from, to)
}

func zonesText(s *forecast.Side) string {
	if len(s.Zones)+len(s.Fallback) == 0 {
		return "nobody"
	}
	text := strings.Join(s.Zones, " and ")
	if len(s.Fallback) > 0 {
		text += ", or else " + strings.Join(s.Fallback, " and ")
	}
	return text
}

func policyLines(changes []forecast.PolicyChange) []string {
	words := map[forecast.Effect]string{
		forecast.Stops: "- %s stops applying to %s%s: it %s", forecast.Starts: "+ %s starts applying to %s%s: it %s",
		forecast.Shrinks: "~ %s applies to %s%s in part: it %s", forecast.Grows: "~ %s applies to %s%s as a whole again: it %s",
	}
	var lines []string
	for _, c := range changes {
		calls := ""
		if len(c.Calls) > 0 {
			calls = fmt.Sprintf(" (called as %s)", strings.Join(hostnames(c.Calls), ", "))
		}
		name := fmt.Sprintf("%s %s spec.to[%d]", c.Kind, c.Policy, c.Entry)
		lines = append(lines, fmt.Sprintf(words[c.Effect], name, c.Destination, calls, c.Why))
	}
	return lines
}

func printFindings(w io.Writer, format render.Format, title string, findings []forecast.Finding) {
	render.PrintList(w, format, []string{title, "FIELD", "WHY, AND WHAT TO DO"}, findings, func(f forecast.Finding) []string {
		why := f.Why
		if f.New {
			why = "(new) " + why
		}
		if f.Remedy != "" {
			why += "; " + f.Remedy
		}
		return []string{f.Object, render.OrDash(f.Field), why}
	})
}

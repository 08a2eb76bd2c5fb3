package hash

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// Change is a field that differs, by its path in the spec. From and To are empty if it is absent.
type Change struct {
	Field    string `json:"field"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	RollsOut bool   `json:"rollsOut"`
}

// Changes are the fields in which two Materializes differ: those that cause a rollout, and those that do not.
func Changes(from, to *v1alpha2.Materialize) (rolls, doesNot []Change) {
	was, is := specOf(from), specOf(to)
	for _, name := range names(&was, &is) {
		for _, change := range differences(name, was.member(name), is.member(name)) {
			if change.RollsOut = CausesRollout(name); change.RollsOut {
				rolls = append(rolls, change)
			} else {
				doesNot = append(doesNot, change)
			}
		}
	}
	before, after := from.Annotations[v1alpha2.AnnotationForceRollout], to.Annotations[v1alpha2.AnnotationForceRollout]
	if before != after {
		rolls = append(rolls, Change{"metadata.annotations[" + v1alpha2.AnnotationForceRollout + "]", before, after, true})
	}
	return rolls, doesNot
}

// differences go down to what the user has to look at: a field, an entry, or an item while there are as many as before.
func differences(path string, from, to *node) []Change {
	if equal(from, to) {
		return nil
	}
	either := cmp.Or(from, to)
	var changes []Change
	switch {
	case either.kind == structure || either.kind == mapping:
		for _, name := range names(from, to) {
			at := path + "." + name
			if either.kind == mapping {
				at = path + "[" + name + "]"
			}
			changes = append(changes, differences(at, from.member(name), to.member(name))...)
		}
	case either.kind == list && from != nil && to != nil && len(from.items) == len(to.items):
		for i := range from.items {
			changes = append(changes, differences(fmt.Sprintf("%s[%d]", path, i), &from.items[i], &to.items[i])...)
		}
	}
	if changes == nil {
		changes = []Change{{Field: path, From: displayText(path, from), To: displayText(path, to)}}
	}
	return changes
}

func equal(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return string(a.appendJSON(nil)) == string(b.appendJSON(nil))
}

// displayText is a value as text. An absent one is shown as its default.
func displayText(path string, n *node) string {
	if n != nil {
		return n.String()
	}
	if value, found := defaults[path]; found {
		return fmt.Sprint(value)
	}
	return ""
}

// membersOf are none for an absent value.
func (n *node) membersOf() []member {
	if n == nil {
		return nil
	}
	return n.members
}

func (n *node) member(name string) *node {
	for i, member := range n.membersOf() {
		if member.name == name {
			return &n.members[i].node
		}
	}
	return nil
}

// names are those of the members of both, in order.
func names(a, b *node) []string {
	var all []string
	for _, member := range slices.Concat(a.membersOf(), b.membersOf()) {
		all = append(all, member.name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

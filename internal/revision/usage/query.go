package usage

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// role is whether a name is queried as a revision or as a tag: labels refer to either, annotations and tags to a revision.
type role uint8

const (
	asRevision role = iota
	asTag
)

func (x *index) usage(name string, as role) Usage {
	a := x.users[name]
	if a == nil {
		return Usage{}
	}
	u := Usage{Namespaces: a.namespaces, Tags: a.tags, Workloads: a.workloads.as(as), Pods: a.pods.as(as)}
	if as == asTag {
		u.Tags = 0
	}
	for reference := range x.usersOf(name, as) {
		if len(u.Names) == maxNames {
			break
		}
		u.Names = append(u.Names, reference.String())
	}
	return u
}

func (x *index) references(name string, as role) []Reference {
	return slices.Collect(x.usersOf(name, as))
}

// usersOf are the users of a name: namespaces, then tags, then workloads, then pods, each sorted by name. It is lazy.
func (x *index) usersOf(name string, as role) iter.Seq[Reference] {
	return func(yield func(Reference) bool) {
		a := x.users[name]
		if a == nil {
			return
		}
		for _, ns := range a.where(func(here namespaceUse) bool { return here.chosen }) {
			if !yield(Reference{Kind: kindNamespace, Name: ns.name, By: ns.policy.String()}) {
				return
			}
		}
		if as == asRevision {
			for _, tag := range slices.Sorted(maps.Keys(a.taggedBy)) {
				if !yield(Reference{Kind: v1.IstioRevisionTagKind, Name: tag, By: x.tags[tag].by(name)}) {
					return
				}
			}
		}
		for _, ns := range a.where(func(here namespaceUse) bool { return here.workloads.as(as) > 0 }) {
			for _, w := range ns.workloadsUsing(name, as) {
				by := ns.uses(ns.workloads[w]).by(name, as) + " of the pod template"
				if !yield(Reference{Kind: w.kind, Namespace: ns.name, Name: w.name, By: by}) {
					return
				}
			}
		}
		for _, ns := range a.where(func(here namespaceUse) bool { return here.pods.as(as) > 0 }) {
			for _, pod := range ns.podsUsing(name, as) {
				by := ns.uses(ns.pods[pod]).by(name, as)
				if !yield(Reference{Kind: kindPod, Namespace: ns.name, Name: pod, By: by}) {
					return
				}
			}
		}
	}
}

func (c podCount) as(as role) int {
	if as == asTag {
		return c.labelled
	}
	return c.any
}

func (a *nameUsers) where(matches func(namespaceUse) bool) []*namespace {
	var found []*namespace
	for ns, here := range a.within {
		if matches(here) {
			found = append(found, ns)
		}
	}
	slices.SortFunc(found, func(a, b *namespace) int { return strings.Compare(a.name, b.name) })
	return found
}

func (n *namespace) workloadsUsing(name string, as role) []workload {
	var found []workload
	for w, refers := range n.workloads {
		if n.uses(refers).by(name, as) != "" {
			found = append(found, w)
		}
	}
	slices.SortFunc(found, func(a, b workload) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
	})
	return found
}

func (n *namespace) podsUsing(name string, as role) []string {
	var found []string
	for pod, refers := range n.pods {
		refers = n.uses(refers)
		if refers.chosen.name == name || refers.injected == name && as == asRevision {
			found = append(found, pod)
		}
	}
	slices.Sort(found)
	return found
}

func (p pod) by(name string, as role) string {
	var by []string
	if p.chosen.name == name {
		by = append(by, p.chosen.String())
	}
	if p.injected == name && as == asRevision {
		by = append(by, "annotation "+v1.AnnotationRevision)
	}
	return strings.Join(by, " and ")
}

func (t tag) by(revision string) string {
	var by []string
	if t.fixed == revision {
		by = append(by, "spec.targetRef")
	}
	if t.current == revision {
		by = append(by, "status.istioRevision")
	}
	return strings.Join(by, " and ")
}

package server

import (
	"cmp"
	"slices"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// list is a list of resources, sorted by name and immutable: configurations and streams share it.
type list []*resource.Resource

func byName(a, b *resource.Resource) int { return cmp.Compare(a.Name, b.Name) }

// sharesMemory says that both lists are the same memory, which saves a comparison.
func (l list) sharesMemory(other list) bool {
	return len(l) == len(other) && (len(l) == 0 || &l[0] == &other[0])
}

func sameVersion(a, b *resource.Resource) bool {
	return a == b || (a.Name == b.Name && a.Version == b.Version)
}

func (l list) equals(other list) bool {
	return l.sharesMemory(other) || slices.EqualFunc(l, other, sameVersion)
}

func (l list) find(name string) *resource.Resource { return resource.Find(l, name) }

// where returns the resources for which keep holds, with the one of the same name in other, or nil.
func (l list) where(other list, keep func(mine, theirs *resource.Resource) bool) list {
	if l.sharesMemory(other) {
		return nil
	}
	var kept list
	next := 0
	for _, r := range l {
		for next < len(other) && other[next].Name < r.Name {
			next++
		}
		var theirs *resource.Resource
		if next < len(other) && other[next].Name == r.Name {
			theirs = other[next]
		}
		if keep(r, theirs) {
			kept = append(kept, r)
		}
	}
	return kept
}

// changedFrom returns the resources that other does not have in the same version.
func (l list) changedFrom(other list) list {
	return l.where(other, func(mine, theirs *resource.Resource) bool { return theirs == nil || !sameVersion(mine, theirs) })
}

// missingIn returns the resources whose name other does not have.
func (l list) missingIn(other list) list {
	return l.where(other, func(_, theirs *resource.Resource) bool { return theirs == nil })
}

// union adds the resources of other, whose names l does not have.
func (l list) union(other list) list {
	if len(other) == 0 {
		return l
	}
	all := slices.Concat(l, other)
	slices.SortFunc(all, byName)
	return all
}

// withBodies leaves out the resources of which only the name is known.
func (l list) withBodies() list {
	if !slices.ContainsFunc(l, func(r *resource.Resource) bool { return r.Body == nil }) {
		return l
	}
	return slices.DeleteFunc(slices.Clone(l), func(r *resource.Resource) bool { return r.Body == nil })
}

func (l list) filter(passes func(name string) bool) list {
	i := slices.IndexFunc(l, func(r *resource.Resource) bool { return !passes(r.Name) })
	if i < 0 {
		return l
	}
	kept := slices.Clone(l[:i])
	for _, r := range l[i:] {
		if passes(r.Name) {
			kept = append(kept, r)
		}
	}
	return kept
}

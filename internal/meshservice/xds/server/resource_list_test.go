package server

import (
	"slices"
	"testing"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// FuzzLists compares what walks two sorted lists with what looks everything up.
func FuzzLists(f *testing.F) {
	f.Add([]byte{}, []byte{1})
	f.Add([]byte{1, 2, 3}, []byte{2, 130, 4})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		mine, theirs := listOf(a), listOf(b)
		var without, added list
		for _, r := range mine {
			other := theirs.find(r.Name)
			if other == nil {
				added = append(added, r)
			}
			if other == nil || other.Version != r.Version {
				without = append(without, r)
			}
		}
		if got := mine.changedFrom(theirs); !got.equals(without) {
			t.Errorf("[%s] without [%s] is [%s]", mine, theirs, got)
		}
		if got := mine.missingIn(theirs); !got.equals(added) {
			t.Errorf("of [%s] strangers to [%s] are [%s]", mine, theirs, got)
		}
		union := mine.union(theirs.missingIn(mine))
		if !slices.IsSortedFunc(union, byName) || len(union.missingIn(mine)) != len(theirs.missingIn(mine)) || len(mine.changedFrom(union)) > 0 {
			t.Errorf("[%s] with [%s] is [%s]", mine, theirs, union)
		}
		if got := mine.filter(func(name string) bool { return theirs.find(name) == nil }); !got.equals(added) {
			t.Errorf("of [%s] not in [%s] are [%s]", mine, theirs, got)
		}
	})
}

// listOf has a resource of each byte: seven bits name it, one is its version.
func listOf(written []byte) list {
	var all list
	for _, b := range written {
		name := string(rune('0' + b&127))
		if !slices.ContainsFunc(all, func(r *resource.Resource) bool { return r.Name == name }) {
			all = append(all, &resource.Resource{Name: name, Version: string(rune('0' + b>>7))})
		}
	}
	slices.SortFunc(all, byName)
	return all
}

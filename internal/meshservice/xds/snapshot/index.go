package snapshot

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// tagIndex finds items by tag.
type tagIndex[T comparable] map[string]sets.Set[T]

func pair(key, value string) string { return key + "\x00" + value }

func (p *tagIndex[T]) set(tags map[string]string, item T, present bool) {
	for key, value := range tags {
		setItem(p, pair(key, value), item, present)
	}
}

// smallestSet returns the items of the tag with the fewest items; the other tags are still to be checked.
func (p tagIndex[T]) smallestSet(tags map[string]string) sets.Set[T] {
	var rarest sets.Set[T]
	first := true
	for key, value := range tags {
		if items := p[pair(key, value)]; first || len(items) < len(rarest) {
			rarest, first = items, false
		}
	}
	return rarest
}

// setKey sets the value of a key in a map, which is created on first use, or deletes the key.
func setKey[M ~map[K]V, K comparable, V any](in *M, key K, value V, present bool) {
	switch {
	case !present:
		delete(*in, key)
	case *in == nil:
		*in = M{key: value}
	default:
		(*in)[key] = value
	}
}

// setNested does so in the map under another key, which is deleted when it is empty.
func setNested[O ~map[K]M, M ~map[L]V, K, L comparable, V any](in *O, outer K, key L, value V, present bool) {
	inner := (*in)[outer]
	setKey(&inner, key, value, present)
	setKey(in, outer, inner, len(inner) > 0)
}

// setItem adds an item to the set under a key, or removes it.
func setItem[O ~map[K]sets.Set[T], K, T comparable](index *O, key K, item T, present bool) {
	setNested(index, key, item, sets.Empty{}, present)
}

// trueFirst compares by a condition.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// selectorIndex finds selectors by tags or labels. Each is under one required pair, or under none.
type selectorIndex[T comparable] map[string]map[T]map[string]string

// unselective are tags that many objects share.
var unselective = map[string]bool{
	kumav1alpha1.TagZone: true, kumav1alpha1.TagProtocol: true, kumav1alpha1.LabelKubernetesNamespace: true,
	kumav1alpha1.LabelNamespace: true, kumav1alpha1.LabelMesh: true, kumav1alpha1.LabelManagedBy: true, kumav1alpha1.LabelOrigin: true,
}

// mostSelective returns the pair that a selector is indexed by.
func mostSelective(wanted map[string]string) string {
	if len(wanted) == 0 {
		return ""
	}
	rank := func(key string) int {
		switch {
		case key == kumav1alpha1.TagService || key == kumav1alpha1.LabelDisplayName:
			return 0
		case unselective[key]:
			return 2
		}
		return 1
	}
	key := slices.MinFunc(slices.Collect(maps.Keys(wanted)), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return pair(key, wanted[key])
}

func (s *selectorIndex[T]) set(wanted map[string]string, item T, present bool) {
	setNested(s, mostSelective(wanted), item, wanted, present)
}

// visit visits the selectors that match.
func (s selectorIndex[T]) visit(there map[string]string, visit func(T)) {
	for key, value := range there {
		for item, wanted := range s[pair(key, value)] {
			if model.MatchesAll(wanted, there) {
				visit(item)
			}
		}
	}
	for item := range s[""] {
		visit(item)
	}
}

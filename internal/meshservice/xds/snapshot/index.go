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

func (p tagIndex[T]) add(tags map[string]string, item T) {
	for key, value := range tags {
		insert(p, pair(key, value), item)
	}
}

func (p tagIndex[T]) remove(tags map[string]string, item T) {
	for key, value := range tags {
		remove(p, pair(key, value), item)
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

func insert[K, T comparable](index map[K]sets.Set[T], key K, item T) {
	if index[key] == nil {
		index[key] = sets.New[T]()
	}
	index[key].Insert(item)
}

func remove[K, T comparable](index map[K]sets.Set[T], key K, item T) {
	index[key].Delete(item)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}

// selectorIndex finds selectors by tags or labels.
type selectorIndex[T comparable] struct {
	// byPair is by one required pair; matchAll are selectors without any.
	byPair   map[string]map[T]map[string]string
	matchAll sets.Set[T]
}

func newSelectorIndex[T comparable]() selectorIndex[T] {
	return selectorIndex[T]{byPair: map[string]map[T]map[string]string{}, matchAll: sets.New[T]()}
}

// unselective are tags that many objects share.
var unselective = map[string]bool{
	kumav1alpha1.TagZone: true, kumav1alpha1.TagProtocol: true, kumav1alpha1.LabelKubernetesNamespace: true,
	kumav1alpha1.LabelNamespace: true, kumav1alpha1.LabelMesh: true, kumav1alpha1.LabelManagedBy: true, kumav1alpha1.LabelOrigin: true,
}

func mostSelective(wanted map[string]string) string {
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

func (s *selectorIndex[T]) add(wanted map[string]string, item T) {
	if len(wanted) == 0 {
		s.matchAll.Insert(item)
		return
	}
	key := mostSelective(wanted)
	if s.byPair[key] == nil {
		s.byPair[key] = map[T]map[string]string{}
	}
	s.byPair[key][item] = wanted
}

func (s *selectorIndex[T]) remove(wanted map[string]string, item T) {
	if len(wanted) == 0 {
		s.matchAll.Delete(item)
		return
	}
	key := mostSelective(wanted)
	delete(s.byPair[key], item)
	if len(s.byPair[key]) == 0 {
		delete(s.byPair, key)
	}
}

// visit visits the selectors that match.
func (s *selectorIndex[T]) visit(there map[string]string, visit func(T)) {
	for key, value := range there {
		for item, wanted := range s.byPair[pair(key, value)] {
			if model.MatchesAll(wanted, there) {
				visit(item)
			}
		}
	}
	for item := range s.matchAll {
		visit(item)
	}
}

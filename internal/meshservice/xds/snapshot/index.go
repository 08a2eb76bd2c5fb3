package snapshot

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// pairs finds what has certain tags without looking at all.
type pairs[T comparable] map[string]sets.Set[T]

func pair(key, value string) string { return key + "\x00" + value }

func (p pairs[T]) add(tags map[string]string, item T) {
	for key, value := range tags {
		insert(p, pair(key, value), item)
	}
}

func (p pairs[T]) remove(tags map[string]string, item T) {
	for key, value := range tags {
		remove(p, pair(key, value), item)
	}
}

// rarest are the items that have the tag of which there are the fewest; the others are still to be looked at.
func (p pairs[T]) rarest(tags map[string]string) sets.Set[T] {
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

// within says whether all that is wanted is there.
func within(wanted, there map[string]string) bool {
	for key, value := range wanted {
		if have, found := there[key]; !found || have != value {
			return false
		}
	}
	return true
}

// selectors finds what selects something by its tags or labels.
type selectors[T comparable] struct {
	// by one pair that each needs; those that need none are unnarrowed.
	by         map[string]map[T]map[string]string
	unnarrowed sets.Set[T]
}

func newSelectors[T comparable]() selectors[T] {
	return selectors[T]{by: map[string]map[T]map[string]string{}, unnarrowed: sets.New[T]()}
}

// Pairs that much has in common are of little use to find something by.
var vague = map[string]bool{
	kumav1alpha1.TagZone: true, kumav1alpha1.TagProtocol: true, kumav1alpha1.LabelKubernetesNamespace: true,
	kumav1alpha1.LabelNamespace: true, kumav1alpha1.LabelMesh: true, kumav1alpha1.LabelManagedBy: true, kumav1alpha1.LabelOrigin: true,
}

func telling(wanted map[string]string) string {
	rank := func(key string) int {
		switch {
		case key == kumav1alpha1.TagService || key == kumav1alpha1.LabelDisplayName:
			return 0
		case vague[key]:
			return 2
		}
		return 1
	}
	key := slices.MinFunc(slices.Collect(maps.Keys(wanted)), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return pair(key, wanted[key])
}

func (s *selectors[T]) add(wanted map[string]string, item T) {
	if len(wanted) == 0 {
		s.unnarrowed.Insert(item)
		return
	}
	key := telling(wanted)
	if s.by[key] == nil {
		s.by[key] = map[T]map[string]string{}
	}
	s.by[key][item] = wanted
}

func (s *selectors[T]) remove(wanted map[string]string, item T) {
	if len(wanted) == 0 {
		s.unnarrowed.Delete(item)
		return
	}
	key := telling(wanted)
	delete(s.by[key], item)
	if len(s.by[key]) == 0 {
		delete(s.by, key)
	}
}

// visit what selects something that has these.
func (s *selectors[T]) visit(there map[string]string, visit func(T)) {
	for key, value := range there {
		for item, wanted := range s.by[pair(key, value)] {
			if within(wanted, there) {
				visit(item)
			}
		}
	}
	for item := range s.unnarrowed {
		visit(item)
	}
}

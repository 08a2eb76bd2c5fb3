package policy

import (
	"cmp"
	"slices"
	"strings"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// maxSpreadSteps bounds a search: all choices among a dozen regions or so are tried, and of more as many as take about a millisecond.
const maxSpreadSteps = 20_000

// selectSpread chooses clusters that meet limits: of those that come first in the order, what brings the groups that are needed, and
// then all that no limit excludes. It is nil if no clusters meet the limits, or none are found in time.
func selectSpread(limits []spreadLimit, order []Member) []Member {
	s, classOf := newSpreadSearch(limits, order)
	if !s.find(s.classes) {
		// A search that was given up may have kept to small groups.
		largest := slices.Clone(s.classes)
		slices.SortStableFunc(largest, func(a, b *spreadClass) int { return cmp.Compare(b.size, a.size) })
		if s.left >= 0 || !s.find(largest) {
			return nil
		}
	}
	var chosen, others []int
	first := map[*spreadClass]bool{}
	for i := range order {
		if class := classOf[i]; class.chosen && !first[class] {
			first[class] = true
			chosen = append(chosen, i)
		} else {
			others = append(others, i)
		}
	}
	for _, i := range others {
		if s.clusters.max > 0 && len(chosen) >= s.clusters.max {
			break
		}
		if !classOf[i].chosen {
			if !s.fits(classOf[i]) {
				continue
			}
			s.choose(classOf[i], 1)
		}
		chosen = append(chosen, i)
	}
	all := make([]Member, len(chosen))
	for i, index := range chosen {
		all[i] = order[index]
	}
	return all
}

// spreadClass are the clusters that are in the same groups: for the search they are one.
type spreadClass struct {
	size int
	// groups are numbers of groups, by limit.
	groups [][]int
	chosen bool
}

// spreadSearch looks for classes that meet limits.
type spreadSearch struct {
	// limits are all but the one of clusters.
	limits   []spreadLimit
	clusters spreadLimit
	classes  []*spreadClass
	// uses are how many chosen classes are in a group, by limit and group, and has is how many groups have any.
	uses [][]int
	has  []int
	// chosen are the chosen classes, and size is how many clusters they have.
	chosen, size int
	// left is how many steps may follow.
	left int
	// seen are the groups of a look ahead, by its number.
	seen  [][]int
	looks int
}

// newSpreadSearch divides clusters into classes, in the order in which the first of each comes.
func newSpreadSearch(limits []spreadLimit, order []Member) (s *spreadSearch, classOf []*spreadClass) {
	s = &spreadSearch{}
	for _, l := range limits {
		if l.field == policyv1alpha1.SpreadByCluster {
			s.clusters = l
		} else {
			s.limits = append(s.limits, l)
		}
	}
	numbers := make([]map[string]int, len(s.limits))
	for i := range numbers {
		numbers[i] = map[string]int{}
	}
	byName := map[string]*spreadClass{}
	for _, m := range order {
		var name strings.Builder
		groups := make([][]int, len(s.limits))
		for i, l := range s.limits {
			of := slices.Compact(slices.Sorted(slices.Values(l.groupsOf(m))))
			for _, group := range of {
				if _, found := numbers[i][group]; !found {
					numbers[i][group] = len(numbers[i])
				}
				groups[i] = append(groups[i], numbers[i][group])
			}
			name.WriteString(strings.Join(of, "\x00") + "\x01")
		}
		class := byName[name.String()]
		if class == nil {
			class = &spreadClass{groups: groups}
			byName[name.String()] = class
			s.classes = append(s.classes, class)
		}
		class.size++
		classOf = append(classOf, class)
	}
	for i := range s.limits {
		s.uses, s.seen = append(s.uses, make([]int, len(numbers[i]))), append(s.seen, make([]int, len(numbers[i])))
	}
	s.has = make([]int, len(s.limits))
	return s, classOf
}

// find chooses classes that meet the limits, those that come first before others. The steps suffice for the first attempt in any case.
func (s *spreadSearch) find(classes []*spreadClass) bool {
	s.left = maxSpreadSteps + 10*len(classes)
	return s.canBeMet(classes) && s.findMore(classes)
}

// findMore chooses what is missing among classes. It takes those that bring something, and gives up one after the other if what is
// left then does not do.
func (s *spreadSearch) findMore(classes []*spreadClass) bool {
	if s.met(s.has, s.size) {
		return true
	}
	for i, class := range classes {
		if s.left--; s.left < 0 {
			return false
		}
		if !s.fits(class) || !s.brings(class) {
			continue
		}
		rest, exhausted := classes[i+1:], s.exhausted()
		s.choose(class, 1)
		if (s.exhausted() == exhausted || s.canBeMet(rest)) && s.findMore(rest) {
			return true
		}
		s.choose(class, -1)
		if !s.canBeMet(rest) {
			return false
		}
	}
	return false
}

func (s *spreadSearch) met(has []int, size int) bool {
	for i, l := range s.limits {
		if has[i] < l.min {
			return false
		}
	}
	return size >= s.clusters.min
}

// exhausted is the number of limits that allow no further group.
func (s *spreadSearch) exhausted() (n int) {
	for i, l := range s.limits {
		if l.max > 0 && s.has[i] == l.max {
			n++
		}
	}
	return n
}

// canBeMet tells whether all is there that is missing, if each class that fits now could be chosen.
func (s *spreadSearch) canBeMet(classes []*spreadClass) bool {
	s.looks++
	has, size := slices.Clone(s.has), s.size
	for _, class := range classes {
		if s.left--; s.left < 0 {
			return false
		}
		if !s.fits(class) {
			continue
		}
		size += class.size
		for i, groups := range class.groups {
			for _, group := range groups {
				if s.uses[i][group] == 0 && s.seen[i][group] != s.looks {
					s.seen[i][group] = s.looks
					has[i]++
				}
			}
		}
	}
	return s.met(has, size)
}

// fits tells whether no limit excludes a class.
func (s *spreadSearch) fits(class *spreadClass) bool {
	if s.clusters.max > 0 && s.chosen >= s.clusters.max {
		return false
	}
	for i, l := range s.limits {
		if l.max > 0 && s.has[i]+s.added(i, class) > l.max {
			return false
		}
	}
	return true
}

// brings tells whether a class has a group, or clusters, that are missing.
func (s *spreadSearch) brings(class *spreadClass) bool {
	for i, l := range s.limits {
		if s.has[i] < l.min && s.added(i, class) > 0 {
			return true
		}
	}
	return s.size < s.clusters.min
}

// added is how many further groups a class brings.
func (s *spreadSearch) added(limit int, class *spreadClass) (n int) {
	for _, group := range class.groups[limit] {
		if s.uses[limit][group] == 0 {
			n++
		}
	}
	return n
}

// choose adds a class to those that are chosen with 1, and takes it out with -1.
func (s *spreadSearch) choose(class *spreadClass, n int) {
	class.chosen = n > 0
	s.chosen, s.size = s.chosen+n, s.size+n*class.size
	for i, groups := range class.groups {
		for _, group := range groups {
			if s.uses[i][group] == 0 {
				s.has[i]++
			}
			if s.uses[i][group] += n; s.uses[i][group] == 0 {
				s.has[i]--
			}
		}
	}
}

package charts

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// parseExact reads a version such as v1.24.0 or v1.25.0-rc.1. Build metadata is refused, because a version
// becomes part of a revision's name.
func parseExact(s string) (*semver.Version, bool) {
	bare, ok := strings.CutPrefix(s, "v")
	if !ok {
		return nil, false
	}
	v, err := semver.StrictNewVersion(bare)
	if err != nil || v.Metadata() != "" {
		return nil, false
	}
	return v, true
}

// exactName is how Fairlead writes a version; charts are released without the v.
func exactName(v *semver.Version) string { return "v" + v.String() }

// parseAll reads the exact versions among names, the newest first, each once.
func parseAll(names []string) []*semver.Version {
	var versions []*semver.Version
	for _, name := range names {
		if v, ok := parseExact(name); ok {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, func(a, b *semver.Version) int { return b.Compare(a) })
	return slices.CompactFunc(versions, (*semver.Version).Equal)
}

// newestFirst are the exact versions among names.
func newestFirst(names []string) []string {
	var sorted []string
	for _, v := range parseAll(names) {
		sorted = append(sorted, exactName(v))
	}
	return sorted
}

func stable(v *semver.Version) bool { return v.Prerelease() == "" }

func sameMinor(a, b *semver.Version) bool { return a.Major() == b.Major() && a.Minor() == b.Minor() }

// Older tells whether one exact version comes before another; a text that is no version comes before none.
func Older(a, b string) bool {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	return errX == nil && errY == nil && x.LessThan(y)
}

package charts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// maxNearest is how many versions a NotFoundError offers.
const maxNearest = 5

// NotFoundError means that there is no such version, and lists the nearest.
type NotFoundError struct {
	Asked   string
	Nearest []string
}

func (e *NotFoundError) Error() string {
	var text strings.Builder
	series, alias := parseLatest(e.Asked)
	switch {
	case e.Asked == "":
		text.WriteString("spec.version is empty, which asks for the newest stable version, and there is none")
	case alias:
		fmt.Fprintf(&text, "spec.version %s asks for the newest stable patch of v%d.%d, and there is none",
			e.Asked, series.Major(), series.Minor())
	default:
		fmt.Fprintf(&text, "there are no charts of spec.version %s", e.Asked)
	}
	switch len(e.Nearest) {
	case 0:
		text.WriteString("; the source of charts has no versions at all, so check --chart-dir or --chart-repository")
	case 1:
		fmt.Fprintf(&text, "; set spec.version to the only one that exists, %s", e.Nearest[0])
	default:
		fmt.Fprintf(&text, "; set spec.version to one that exists, of which the nearest are %s", strings.Join(e.Nearest, ", "))
	}
	return text.String()
}

// Resolve finds the exact version that is asked for: an exact one, vX.Y-latest for the newest patch of X.Y, or "" for
// the newest of all. Prereleases only count when they are asked for exactly. The error is a *NotFoundError.
func Resolve(asked string, available []string) (string, error) {
	known := parseAll(available)
	wanted := matcherFor(asked)
	for _, v := range known {
		if wanted(v) {
			return exactName(v), nil
		}
	}
	return "", &NotFoundError{Asked: asked, Nearest: nearest(asked, known)}
}

func matcherFor(asked string) func(*semver.Version) bool {
	if asked == "" {
		return stable
	}
	if series, ok := parseLatest(asked); ok {
		return func(v *semver.Version) bool { return stable(v) && sameMinor(v, series) }
	}
	return func(v *semver.Version) bool { return exactName(v) == asked }
}

// parseLatest reads vX.Y-latest as the last patch that X.Y could ever have.
func parseLatest(asked string) (*semver.Version, bool) {
	series, isAlias := strings.CutSuffix(asked, "-latest")
	first, ok := parseExact(series + ".0")
	if !isAlias || !ok {
		return nil, false
	}
	return semver.New(first.Major(), first.Minor(), math.MaxUint64, "", ""), true
}

// nearest orders known, which is sorted the newest first, by the distance to the version that was asked for.
func nearest(asked string, known []*semver.Version) []string {
	sorted := slices.Clone(known)
	if target := targetVersion(asked); target != nil {
		slices.SortStableFunc(sorted, func(a, b *semver.Version) int { return compareDistance(target, a, b) })
	} else {
		slices.SortStableFunc(sorted, func(a, b *semver.Version) int { return stableFirst(a, b) })
	}
	var names []string
	for _, v := range sorted[:min(len(sorted), maxNearest)] {
		names = append(names, exactName(v))
	}
	return names
}

// targetVersion is the version that was probably meant, or nil.
func targetVersion(asked string) *semver.Version {
	if series, ok := parseLatest(asked); ok {
		return series
	}
	v, err := semver.NewVersion(asked)
	if err != nil {
		return nil
	}
	return v
}

// compareDistance compares by major, then minor, and by patch only within the minor that was asked for: elsewhere the newest
// patch is the one to have.
func compareDistance(target, a, b *semver.Version) int {
	patch := 0
	if sameMinor(target, a) && sameMinor(target, b) {
		patch = cmp.Compare(distance(target.Patch(), a.Patch()), distance(target.Patch(), b.Patch()))
	}
	return cmp.Or(
		cmp.Compare(distance(target.Major(), a.Major()), distance(target.Major(), b.Major())),
		cmp.Compare(distance(target.Minor(), a.Minor()), distance(target.Minor(), b.Minor())),
		patch,
		stableFirst(a, b),
	)
}

func stableFirst(a, b *semver.Version) int {
	switch {
	case stable(a) == stable(b):
		return 0
	case stable(a):
		return -1
	}
	return 1
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }

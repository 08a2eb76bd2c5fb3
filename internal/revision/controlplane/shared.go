package controlplane

import (
	"cmp"
	"slices"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// All control planes share two releases of the base chart: Istio's CRDs and other objects that change only with the version,
// and the webhook that validates configuration without a revision.
const (
	BaseRelease      = "fairlead-base"
	ValidatorRelease = "fairlead-default-validator"
)

// RevisionCandidate is an IstioRevision, as input for the decision on shared releases.
type RevisionCandidate struct {
	*v1.IstioRevision
	// Installable is false for one that cannot be installed as things are.
	Installable bool
}

// shared is which revisions manage the shared releases, and the version and namespace of these.
type shared struct {
	// Needed is false when every revision is being deleted.
	Needed bool
	// BaseManager manages the base release; it is nil when no revision can at the moment.
	BaseManager *v1.IstioRevision
	// Version and namespace of the base release.
	Version, Namespace string
	// Default is the revision that validates, and manages the validator release; it may be nil.
	Default *v1.IstioRevision
}

// decideShared chooses the revisions that manage the shared releases. CRDs are never downgraded: an older control plane works
// with newer ones, and stored objects may already use them.
func decideShared(candidates []RevisionCandidate, defaultTag *v1.IstioRevisionTag, base []release.State) shared {
	candidates = slices.DeleteFunc(slices.Clone(candidates), func(c RevisionCandidate) bool { return !c.DeletionTimestamp.IsZero() })
	// An installed base release keeps its namespace as long as possible.
	elsewhere := func(c RevisionCandidate) int {
		if slices.ContainsFunc(base, func(state release.State) bool { return state.Namespace == c.Spec.Namespace }) {
			return 0
		}
		return 1
	}
	slices.SortFunc(candidates, func(a, b RevisionCandidate) int {
		return cmp.Or(
			cmp.Compare(elsewhere(a), elsewhere(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	decided := shared{Needed: len(candidates) > 0}
	if decided.Needed {
		decided.Namespace = candidates[0].Spec.Namespace
	}
	for _, state := range base {
		decided.Version = newerVersion(decided.Version, state.ChartVersion)
	}
	// A revision that cannot be installed at the moment may still run: it counts for the namespace, not for the version.
	for _, c := range candidates {
		if c.Installable {
			decided.Version = newerVersion(decided.Version, c.Spec.Version)
			decided.BaseManager = cmp.Or(decided.BaseManager, c.IstioRevision)
		}
		tagged := defaultTag != nil && defaultTag.Status.IstioRevision == c.Name
		if c.Name == v1.DefaultRevision || tagged {
			decided.Default = c.IstioRevision
		}
	}
	return decided
}

func newerVersion(a, b string) string {
	if _, err := semver.NewVersion(a); err != nil || charts.Older(a, b) {
		return b
	}
	return a
}

// baseValues are the values of the revision that the base chart uses. Other values must neither upgrade the release nor, if
// invalid, block the other revisions.
func baseValues(revision *v1.IstioRevision, namespace string) map[string]any {
	all := Values(revision)
	global := all["global"].(map[string]any)
	global["istioNamespace"] = namespace
	delete(global, "profile")
	delete(global, "platform")
	values := map[string]any{"global": global, "defaultRevision": ""}
	if base, ok := all["base"]; ok {
		values["base"] = base
	}
	return values
}

func validatorValues(revision *v1.IstioRevision) map[string]any {
	values := baseValues(revision, revision.Spec.Namespace)
	values["defaultRevision"] = revision.Name
	if experimental, ok := revision.Spec.Values["experimental"]; ok {
		values["experimental"] = experimental
	}
	return values
}

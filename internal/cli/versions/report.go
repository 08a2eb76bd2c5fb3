// Package versions compares the versions of the command line, of the operators of a cluster and of its CRDs.
package versions

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator/lease"
	"github.com/fairlead/fairlead/internal/version"
)

// Report is what `fairlead version` prints.
type Report struct {
	Client version.Info `json:"client"`
	// Operators and CRDs are left out when only the client was asked for.
	Operators []Operator `json:"operators,omitempty"`
	CRDs      *CRDs      `json:"crds,omitempty"`
	// Fits is left out when it is unknown.
	Fits *bool `json:"fits,omitempty"`
	// Problems say what does not fit, and what to do.
	Problems []string `json:"problems,omitempty"`
}

// Operator is one that leads passages.
type Operator struct {
	Passages []string `json:"passages,omitempty"`
	Version  string   `json:"version,omitempty"`
	Leader   string   `json:"leader,omitempty"`
	// Unknown is why there is no version.
	Unknown string `json:"unknown,omitempty"`
	// Absent holds when no operator leads any passage.
	Absent bool `json:"-"`
}

// CRDs are the schema versions of Fairlead's CRDs.
type CRDs struct {
	Schemas []crds.Schema `json:"schemas,omitempty"`
	// Unknown is why there are none.
	Unknown string `json:"unknown,omitempty"`
}

// Compare decides whether the versions fit.
func Compare(client version.Info, operators []Operator, schemas CRDs) Report {
	report := Report{Client: client, Operators: operators, CRDs: &schemas}
	unknown := schemas.Unknown != ""
	for _, o := range operators {
		switch {
		case o.Unknown != "":
			unknown = true
		case !sameMinor(client.Version, o.Version):
			report.Problems = append(report.Problems, fmt.Sprintf("fairlead %s and the operator %s, which leads %s, do not fit: what `fairlead plan` prints may differ"+
				" from what the operator does. Use fairlead %s, or install the chart of %s.", client.Version, o.Version, strings.Join(o.Passages, ", "), o.Version, client.Version))
		}
	}
	if older := schemas.named(crds.SchemaOlder); len(older) > 0 {
		report.Problems = append(report.Problems, fmt.Sprintf("%s of the cluster %s older than that of fairlead %s: %s. An operator of this version upgrades CRDs when it"+
			" starts. If it runs with --install-crds=false, run `fairlead crds install`.", count(older), are(older), client.Version, strings.Join(older, ", ")))
	}
	if newer := schemas.named(crds.SchemaNewer); len(newer) > 0 {
		report.Problems = append(report.Problems, fmt.Sprintf("%s of the cluster %s newer than that of fairlead %s: %s. Use a newer fairlead: the version of the operator.",
			count(newer), are(newer), client.Version, strings.Join(newer, ", ")))
	}
	if len(report.Problems) > 0 || !unknown {
		report.Fits = ptr.To(len(report.Problems) == 0)
	}
	return report
}

// sameMinor tells whether two versions differ by patches at most. Builds between releases have to be the same.
func sameMinor(a, b string) bool {
	if a == b {
		return true
	}
	one, errOne := semver.NewVersion(a)
	other, errOther := semver.NewVersion(b)
	if errOne != nil || errOther != nil || one.Prerelease() != "" || other.Prerelease() != "" {
		return false
	}
	return one.Major() == other.Major() && one.Minor() == other.Minor()
}

func (c CRDs) named(state crds.SchemaState) []string {
	var names []string
	for _, schema := range c.Schemas {
		if schema.State == state {
			names = append(names, schema.Name)
		}
	}
	return names
}

func count(names []string) string {
	if len(names) == 1 {
		return "the schema of 1 CRD"
	}
	return fmt.Sprintf("the schemas of %d CRDs", len(names))
}

func are(names []string) string {
	if len(names) == 1 {
		return "is"
	}
	return "are"
}

// operatorsOf reads from the leases of passages which operators lead.
func operatorsOf(leases map[string]*coordinationv1.Lease, now time.Time) []Operator {
	var operators []Operator
	for _, passage := range slices.Sorted(maps.Keys(leases)) {
		o := operatorOf(leases[passage], now)
		if o.Leader == "" {
			continue
		}
		if i := slices.IndexFunc(operators, func(other Operator) bool { return other.Leader == o.Leader && other.Version == o.Version }); i >= 0 {
			operators[i].Passages = append(operators[i].Passages, passage)
			continue
		}
		o.Passages = []string{passage}
		operators = append(operators, o)
	}
	if len(operators) == 0 {
		return []Operator{{Absent: true, Unknown: "no operator leads a passage: none runs, or none takes part in leader election"}}
	}
	return operators
}

func operatorOf(l *coordinationv1.Lease, now time.Time) Operator {
	o := Operator{Leader: ptr.Deref(l.Spec.HolderIdentity, ""), Version: l.Labels[lease.VersionLabel]}
	switch {
	case o.Leader != "" && !lease.IsHeld(l, now):
		o.Version = ""
		o.Unknown = fmt.Sprintf("%s renewed the Lease %s/%s %s ago: the operator does not run, or cannot reach the API server",
			o.Leader, l.Namespace, l.Name, now.Sub(l.Spec.RenewTime.Time).Round(time.Second))
	case o.Version == "":
		o.Unknown = fmt.Sprintf("%s does not record its version in the Lease %s/%s: it is a build without one", o.Leader, l.Namespace, l.Name)
	}
	return o
}

// Print draws a report for people.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "fairlead %s (commit %s, %s, %s)\n", r.Client.Version, r.Client.Commit, r.Client.GoVersion, r.Client.Platform)
	for _, o := range r.Operators {
		if o.Unknown != "" {
			fmt.Fprintf(w, "operator unknown: %s\n", o.Unknown)
		} else {
			fmt.Fprintf(w, "operator %s (leads %s as %s)\n", o.Version, strings.Join(o.Passages, ", "), o.Leader)
		}
	}
	if r.CRDs != nil {
		fmt.Fprintf(w, "CRDs %s\n", r.CRDs)
	}
	for _, problem := range r.Problems {
		fmt.Fprintf(w, "\n%s\n", problem)
	}
}

// String counts the schemas.
func (c CRDs) String() string {
	if c.Unknown != "" {
		return "unknown: " + c.Unknown
	}
	var parts []string
	for _, state := range []struct {
		state crds.SchemaState
		text  string
	}{
		{crds.SchemaSame, "as this fairlead has them"}, {crds.SchemaOlder, "older"}, {crds.SchemaNewer, "newer"},
		{crds.SchemaNotOwned, "not installed by Fairlead"}, {crds.SchemaNotInstalled, "not installed"},
	} {
		if names := c.named(state.state); len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", len(names), state.text))
		}
	}
	return strings.Join(parts, ", ")
}

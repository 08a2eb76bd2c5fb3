package installer

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// ChangedChartError means that a chart is not the one that was first installed under its version.
type ChangedChartError struct {
	Chart v1.ChartDigest
	// Source is where the chart was loaded from.
	Source string
	// Recorded is the digest of the chart that was installed.
	Recorded string
	// Revision is the IstioRevision whose annotation accepts the chart.
	Revision string
}

func (e *ChangedChartError) Error() string {
	return fmt.Sprintf("chart %s %s of %s has digest %s, but %s was installed under this version, so nothing is written. "+
		"Restore the chart in its source; or, if you trust the new one, accept it with `kubectl annotate --overwrite istiorevision %s %s=%s`",
		e.Chart.Name, e.Chart.Version, e.Source, e.Chart.Digest, e.Recorded, e.Revision, v1.AnnotationAcceptChartDigest, e.Chart.Digest)
}

// ChartRecords are the charts that were installed, as one revision sees them.
type ChartRecords struct {
	Revision *v1.IstioRevision
	// Others are all revisions of the cluster.
	Others []*v1.IstioRevision
}

// Check is the error of a chart that is not the recorded one. The record of the revision itself counts more than those of
// others. A chart of which there is no record is accepted, and recorded when it is installed.
func (r ChartRecords) Check(chart v1.ChartDigest, source string) error {
	known := recordedDigests(r.Revision.Status.Charts, chart)
	if len(known) == 0 {
		for _, other := range r.Others {
			known = append(known, recordedDigests(other.Status.Charts, chart)...)
		}
	}
	if len(known) == 0 || slices.Contains(known, chart.Digest) || slices.Contains(acceptedDigests(r.Revision), chart.Digest) {
		return nil
	}
	return &ChangedChartError{Chart: chart, Source: source, Recorded: slices.Min(known), Revision: r.Revision.Name}
}

func recordedDigests(recorded []v1.ChartDigest, chart v1.ChartDigest) []string {
	var digests []string
	for _, r := range recorded {
		if r.Name == chart.Name && r.Version == chart.Version {
			digests = append(digests, r.Digest)
		}
	}
	return digests
}

func acceptedDigests(revision *v1.IstioRevision) []string {
	var accepted []string
	for digest := range strings.SplitSeq(revision.Annotations[v1.AnnotationAcceptChartDigest], ",") {
		accepted = append(accepted, strings.TrimSpace(digest))
	}
	return accepted
}

// RecordChart adds a chart to records, in the place of one of the same name and version. Of too many, the oldest are dropped.
func RecordChart(records []v1.ChartDigest, chart v1.ChartDigest) []v1.ChartDigest {
	if chart.Digest == "" || slices.Contains(records, chart) {
		return records
	}
	kept := slices.DeleteFunc(slices.Clone(records), func(r v1.ChartDigest) bool {
		return r.Name == chart.Name && r.Version == chart.Version
	})
	kept = append(kept, chart)
	return kept[max(0, len(kept)-v1.MaxChartDigests):]
}

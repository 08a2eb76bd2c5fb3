// Package charts knows where Istio's charts come from: a directory, a Helm repository or an OCI registry.
package charts

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/runtime"
)

// istiod is the chart of a control plane. A version of Istio exists if the source has this chart in that version.
const istiod = "istiod"

// Chart is a loaded chart and the digest of what it was loaded from.
//
// Its values and its lists of files are the caller's own. The contents of the files are shared and must not be changed.
type Chart struct {
	*chart.Chart
	// Digest is "sha256:" and the sum of the archive or, for a directory, of the names and contents of its files.
	Digest string
}

// Source knows which versions of Istio there are charts for, and loads them. It is safe for concurrent use.
type Source interface {
	// Versions are exact, such as v1.24.0, the newest first.
	Versions(ctx context.Context) ([]string, error)
	// Load a chart, "istiod" or "base", of an exact version. Where there is none, the error is an fs.ErrNotExist.
	Load(ctx context.Context, name, version string) (*Chart, error)
	// Refresh is how often to list versions again.
	Refresh() time.Duration
	// String names the source for people.
	String() string
}

// New opens the source that the options name, without any request.
func New(o Options) (Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Dir != "" {
		path, err := filepath.Abs(o.Dir)
		if err != nil {
			return nil, fmt.Errorf("--chart-dir %s: %w", o.Dir, err)
		}
		return &directory{path: path}, nil
	}
	from, err := o.repository()
	if err != nil {
		return nil, err
	}
	cacheDir, err := o.cacheDir()
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(o.CAFile)
	if err != nil {
		return nil, err
	}
	return newRemote(from.origin(o, transport), cache{dir: cacheDir}), nil
}

var chartName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// validateChart keeps invalid names out of paths and URLs.
func validateChart(name, version string) error {
	if !chartName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a chart", name)
	}
	if _, ok := parseExact(version); !ok {
		return fmt.Errorf("%q is not an exact version such as v1.24.0", version)
	}
	return nil
}

// copy protects a kept chart: rendering changes the values and dependencies of a chart.
func (c *Chart) copy() *Chart {
	return &Chart{Chart: copyOf(c.Chart), Digest: c.Digest}
}

func copyOf(c *chart.Chart) *chart.Chart {
	out := *c
	metadata := *c.Metadata
	metadata.Dependencies = slices.Clone(metadata.Dependencies)
	for i, dependency := range metadata.Dependencies {
		own := *dependency
		metadata.Dependencies[i] = &own
	}
	out.Metadata = &metadata
	out.Values = runtime.DeepCopyJSON(c.Values)
	out.Raw = slices.Clone(c.Raw)
	out.Templates = slices.Clone(c.Templates)
	out.Files = slices.Clone(c.Files)
	var dependencies []*chart.Chart
	for _, dependency := range c.Dependencies() {
		dependencies = append(dependencies, copyOf(dependency))
	}
	out.SetDependencies(dependencies...)
	return &out
}

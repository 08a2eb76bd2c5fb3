// Package charts knows where Istio's charts come from: a directory, a Helm repository or an OCI registry.
package charts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// istiod is the chart of a control plane. A version of Istio exists if the source has this chart in that version.
const istiod = "istiod"

// Chart is a loaded chart and the digest of what it was loaded from. It is shared and must not be changed.
type Chart struct {
	*chart.Chart
	// Digest is "sha256:" and the sum of the archive or, for a directory, of the names and contents of its files.
	Digest string
	// Content is a digest of what the chart holds. It is the same wherever the chart was loaded from.
	Content string
}

// Source knows which versions of Istio there are charts for, and loads them. It is safe for concurrent use.
type Source interface {
	// Versions are exact, such as v1.24.0, the newest first.
	Versions(ctx context.Context) ([]string, error)
	// Load a chart, "istiod" or "base", of an exact version. Where there is none, the error is an fs.ErrNotExist.
	Load(ctx context.Context, name, version string) (*Chart, error)
	// Forget a chart that was refused, so that the next Load does not take it from a cache.
	Forget(name, version string)
	// Refresh is how often to list versions again.
	Refresh() time.Duration
	// String names the source for people.
	String() string
}

// New opens the source that the options name. It reads files, and makes no request. The error names every invalid option.
func New(o Options) (Source, error) {
	if o.Dir != "" {
		return o.directory()
	}
	location, badURL := o.repository()
	cacheDir, noCache := o.cacheDir()
	transport, badCA := newTransport(o.CAFile)
	verify, badKeys := o.verification(location)
	if err := errors.Join(badURL, noCache, badCA, badKeys, validateRegistryConfig(o.RegistryConfig)); err != nil {
		return nil, err
	}
	var from origin = &repository{url: location.String(), client: &http.Client{Transport: transport}, verification: verify}
	if location.Scheme == "oci" {
		from = &registry{
			path:      location.Host + location.Path,
			plainHTTP: loopback(location.Hostname()) && o.CAFile == "",
			config:    o.RegistryConfig,
			transport: transport,

			verification: verify,
		}
	}
	return &remote{origin: from, cache: cache{filepath.Join(cacheDir, "helm")}, verification: verify, now: time.Now}, nil
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

package charts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// directory holds charts as VERSION/CHART, and is read each time.
type directory struct{ path string }

func (d directory) Refresh() time.Duration { return 10 * time.Second }

func (d directory) String() string { return "directory " + d.path }

func (d directory) Versions(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("list versions of Istio: %w; check --chart-dir", err)
	}
	var versions []string
	for _, entry := range entries {
		_, err := os.Stat(filepath.Join(d.path, entry.Name(), istiod, "Chart.yaml"))
		if isNotExist(err) {
			continue
		}
		// A chart that cannot be read is listed all the same; Load returns the error.
		versions = append(versions, entry.Name())
	}
	return newestFirst(versions), nil
}

func isNotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func (d directory) Load(ctx context.Context, name, version string) (*Chart, error) {
	if err := validateChart(name, version); err != nil {
		return nil, fmt.Errorf("load a chart from %s: %w", d, err)
	}
	path := filepath.Join(d.path, version, name)
	// Resolved once, so that a symlink that changes while it is read does not mix two charts.
	root, err := filepath.EvalSymlinks(path)
	if err == nil {
		_, err = os.ReadDir(root) // Helm's loader takes a directory that cannot be read for an empty one.
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isNotExist(err):
		return nil, fmt.Errorf("load chart %s %s: %w", name, version, missingChartError(path+" does not exist; check --chart-dir"))
	case err != nil:
		return nil, fmt.Errorf("load chart %s %s: %w", name, version, err)
	}
	parsed, err := loader.LoadDir(root)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", path, err)
	}
	return newChart(parsed, digestOfFiles(parsed.Raw))
}

// Forget does nothing: a directory is read each time.
func (d directory) Forget(string, string) {}

package charts

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/ignore"
)

// directory holds charts as VERSION/CHART, and is read each time.
type directory struct {
	path   string
	loaded sync.Map // of *Chart, by path
}

func (d *directory) Refresh() time.Duration { return 10 * time.Second }

func (d *directory) String() string { return "directory " + d.path }

func (d *directory) Versions(ctx context.Context) ([]string, error) {
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

func (d *directory) Load(ctx context.Context, name, version string) (*Chart, error) {
	if err := validateChart(name, version); err != nil {
		return nil, fmt.Errorf("load a chart from %s: %w", d, err)
	}
	path := filepath.Join(d.path, version, name)
	files, err := readChart(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("load chart %s %s: %w", name, version, err)
	}
	// Only the contents tell whether a chart has changed; the times of its files do not.
	digest := digestOfFiles(files)
	if kept, ok := d.loaded.Load(path); ok && kept.(*Chart).Digest == digest {
		return kept.(*Chart).copy(), nil
	}
	parsed, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", path, err)
	}
	c := &Chart{Chart: parsed, Digest: digest}
	d.loaded.Store(path, c)
	return c.copy(), nil
}

func digestOfFiles(files []*archive.BufferedFile) string {
	sum := sha256.New()
	for _, file := range files {
		// The lengths keep one file from passing for two.
		fmt.Fprintf(sum, "%d %s %d ", len(file.Name), file.Name, len(file.Data))
		sum.Write(file.Data)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// readChart reads the files of a chart as Helm would, sorted by name.
func readChart(ctx context.Context, dir string) ([]*archive.BufferedFile, error) {
	// Resolved once, so that a symlink that changes while it is read does not mix two charts.
	root, err := filepath.EvalSymlinks(dir)
	switch {
	case isNotExist(err):
		return nil, missingChartError(dir + " does not exist; check --chart-dir")
	case err != nil:
		return nil, err
	}
	rules, err := ignoreRules(filepath.Join(root, ignore.HelmIgnore))
	if err != nil {
		return nil, err
	}
	r := &chartReader{ctx: ctx, root: root, rules: rules, budget: archive.NewBudgetedReader(archive.MaxDecompressedChartSize)}
	if err := r.readDir("", nil); err != nil {
		return nil, err
	}
	slices.SortFunc(r.files, func(a, b *archive.BufferedFile) int { return cmp.Compare(a.Name, b.Name) })
	return r.files, nil
}

func ignoreRules(file string) (*ignore.Rules, error) {
	rules, err := ignore.ParseFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		rules = ignore.Empty()
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	rules.AddDefaults()
	return rules, nil
}

// chartReader follows symbolic links, which Go's own walk does not.
type chartReader struct {
	ctx    context.Context
	root   string
	rules  *ignore.Rules
	budget *archive.BudgetedReader
	files  []*archive.BufferedFile
}

// readDir reads a directory; above are its parents.
func (r *chartReader) readDir(name string, above []fs.FileInfo) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	dir := filepath.Join(r.root, name)
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return fmt.Errorf("%s is a link to a directory that it is in", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := r.readEntry(path.Join(name, entry.Name()), append(slices.Clip(above), info)); err != nil {
			return err
		}
	}
	return nil
}

func (r *chartReader) readEntry(name string, above []fs.FileInfo) error {
	file := filepath.Join(r.root, name)
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case r.rules.Ignore(name, info):
		return nil
	case info.IsDir():
		return r.readDir(name, above)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a directory", file)
	}
	data, err := r.budget.ReadFileWithBudget(file, info.Size())
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	r.files = append(r.files, &archive.BufferedFile{
		Name: name, ModTime: info.ModTime(), Data: bytes.TrimPrefix(data, []byte("\uFEFF")),
	})
	return nil
}

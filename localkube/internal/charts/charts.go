// Package charts brings Istio's own charts out of Go's module cache: they are
// part of Istio's module, so the module proxy serves them, checksummed.
package charts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// releases that the module proxy serves whole. Istio's tags are not versions
// that Go knows, hence the commits' pseudo-versions.
var releases = []struct{ version, module string }{
	{"v1.24.0", "v0.0.0-20241105211601-8825a6b7f8c9"},
	{"v1.26.0", "v0.0.0-20250506181944-c2e9871f340c"},
	{"v1.31.0", "v0.0.0-20260827124520-eed52ebb66ad"},
	{"v1.31.1", "v0.0.0-20260916195427-190ae921b848"},
}

// charts by the name users know, and where they lie under manifests/charts.
var charts = map[string]string{
	"base":    "base",
	"istiod":  "istio-control/istio-discovery",
	"default": "default",
	"gateway": "gateway",
}

// errNotServed is the module proxy's word that it has no such version, now or ever: trying again does not help.
var errNotServed = errors.New("the module proxy does not serve them")

// Write leaves every chart as DIR/<version>/<chart>, each whole or not at all. A release that the module proxy has
// withdrawn is left out, and told: the others are of use without it.
func Write(ctx context.Context, dir string, progress func(string)) error {
	var refused error
	written := 0
	for _, r := range releases {
		err := writeRelease(ctx, filepath.Join(dir, r.version), r.module)
		switch {
		case errors.Is(err, errNotServed):
			refused = fmt.Errorf("charts of Istio %s: %w", r.version, err)
			progress(fmt.Sprintf("charts of Istio %s are left out: %v", r.version, err))
		case err != nil:
			return fmt.Errorf("charts of Istio %s: %w", r.version, err)
		default:
			written++
			progress(fmt.Sprintf("charts of Istio %s in %s", r.version, filepath.Join(dir, r.version)))
		}
	}
	if written == 0 {
		return refused
	}
	return nil
}

func writeRelease(ctx context.Context, dir, module string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil // renamed into place below, so it is whole
	}
	source, err := moduleDir(ctx, module)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".charts-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for name, path := range charts {
		if err := os.CopyFS(filepath.Join(tmp, name), os.DirFS(filepath.Join(source, "manifests", "charts", path))); err != nil {
			return err
		}
	}
	if err := makeWritable(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// makeWritable undoes the module cache's read-only modes, so that a chart can be deleted.
func makeWritable(root string) error {
	return filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	})
}

// refusal tells a final word of the module proxy from trouble on the way to it.
func refusal(text string) error {
	for _, final := range []string{"403 Forbidden", "404 Not Found", "410 Gone"} {
		if strings.Contains(text, final) {
			return fmt.Errorf("%w (%s)", errNotServed, final)
		}
	}
	return errors.New(text)
}

func moduleDir(ctx context.Context, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "istio.io/istio@"+version)
	cmd.Dir = os.TempDir() // outside any module, whose own requirements do not matter here
	output, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("the go command is needed to fetch them, and is not on the PATH")
	}
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(output, &module); jsonErr != nil {
		return "", errors.Join(err, jsonErr)
	}
	if module.Error != "" {
		return "", refusal(module.Error)
	}
	return module.Dir, err
}

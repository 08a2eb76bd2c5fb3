package helm_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// Istio's charts come out of a directory as Helm itself would load them.
func TestDirectoryLoadsIstio(t *testing.T) {
	t.Parallel()
	dir := cluster.Charts(t)
	source, err := charts.New(charts.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	versions, err := source.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if latest, err := charts.Resolve("v1.24-latest", versions); err != nil || latest != "v1.24.0" {
		t.Errorf("got %s, %v", latest, err)
	}
	for _, version := range []string{"v1.24.0", "v1.26.0"} {
		for _, name := range []string{"istiod", "base"} {
			want, err := loader.LoadDir(filepath.Join(dir, version, name))
			if err != nil {
				t.Fatal(err)
			}
			got, err := source.Load(t.Context(), name, version)
			if err != nil {
				t.Fatal(err)
			}
			for what, same := range map[string]bool{
				"metadata":  reflect.DeepEqual(want.Metadata, got.Metadata),
				"values":    reflect.DeepEqual(want.Values, got.Values),
				"templates": reflect.DeepEqual(want.Templates, got.Templates),
				"files":     reflect.DeepEqual(want.Files, got.Files),
				"schema":    bytes.Equal(want.Schema, got.Schema),
			} {
				if !same {
					t.Errorf("%s %s: the %s differ", version, name, what)
				}
			}
		}
	}
}

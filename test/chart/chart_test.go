// Package chart_test has Helm lint and render the chart, as `helm lint` and `helm template` do, with a few sets of values.
package chart_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

var update = flag.Bool("update", false, "write the golden files")

// kubernetes is the oldest version that the chart takes.
var kubernetes = &common.KubeVersion{Version: "v1.31.0", Major: "1", Minor: "31"}

func chartDir(t testing.TB) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "charts", "fairlead")
}

// TestGolden compares the objects and notes of each set of values in testdata with those that were reviewed.
func TestGolden(t *testing.T) {
	sets, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(sets) == 0 {
		t.Fatalf("no sets of values: %v", err)
	}
	for _, set := range sets {
		name := strings.TrimSuffix(filepath.Base(set), ".values.yaml")
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			readYAML(t, set, &values)

			lint := action.NewLint()
			lint.Strict, lint.KubeVersion, lint.Namespace = true, kubernetes, "fairlead-system"
			result := lint.Run([]string{chartDir(t)}, values)
			if len(result.Errors) > 0 {
				t.Errorf("helm lint --strict: %v", result.Errors)
			}

			manifest, notes := template(t, values)
			golden(t, name+".golden.yaml", manifest)
			golden(t, name+".notes.txt", notes)
		})
	}
}

// template renders the chart, without the rules that are generated: these have a file of their own each.
func template(t testing.TB, values map[string]any) (manifest, notes string) {
	t.Helper()
	loaded, err := loader.LoadDir(chartDir(t))
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy, install.KubeVersion = action.DryRunClient, kubernetes
	install.ReleaseName, install.Namespace = "fairlead", "fairlead-system"
	rendered, err := install.RunWithContext(t.Context(), loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	release := rendered.(*releasev1.Release)
	objects, err := chart.Decode(release.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	generated := generatedRules(t)
	var text strings.Builder
	for _, object := range objects {
		if rules, ok := object.Object["rules"].([]any); ok && object.GetKind() == "ClusterRole" {
			object.Object["rules"] = slices.DeleteFunc(rules, func(rule any) bool {
				return slices.ContainsFunc(generated, func(other any) bool { return reflect.DeepEqual(rule, other) })
			})
		}
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	return text.String(), release.Info.Notes
}

func generatedRules(t testing.TB) []any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir(t), "generated", "*role.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no generated rules: %v", err)
	}
	var all []any
	for _, file := range files {
		var role struct{ Rules []any }
		readYAML(t, file, &role)
		all = append(all, role.Rules...)
	}
	return all
}

// golden compares text with a file of testdata.
func golden(t testing.TB, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: `make generate` writes this, if that is wanted: %s", file, diff)
	}
}

// TestSchemaIsStrict: no part of the values takes what the chart does not know.
func TestSchemaIsStrict(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir(t), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var check func(where string, node any)
	check = func(where string, node any) {
		switch node := node.(type) {
		case map[string]any:
			if more, set := node["additionalProperties"]; node["type"] == "object" && (!set || more == true) && where != ".properties.global" {
				t.Errorf("%s takes every property", where)
			}
			for key, inner := range node {
				check(where+"."+key, inner)
			}
		case []any:
			for _, inner := range node {
				check(where, inner)
			}
		}
	}
	check("", schema)
}

func readYAML(t testing.TB, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

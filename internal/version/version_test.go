package version

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestResolve(t *testing.T) {
	recorded := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc123"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}

	cases := map[string]struct {
		version, commit string
		build           *debug.BuildInfo
		wantVersion     string
		wantCommit      string
	}{
		"the linker wins over what Go recorded":  {"v1.2.3", "fff", recorded("v0.0.1", revision), "v1.2.3", "fff"},
		"go install records the module version":  {"", "", recorded("v0.4.0"), "v0.4.0", "unknown"},
		"go build in a clone records the commit": {"", "", recorded("(devel)", revision), "(devel)", "abc123"},
		"uncommitted changes are told":           {"", "", recorded("(devel)", revision, modified), "(devel)", "abc123-dirty"},
		"nothing known at all":                   {"", "", nil, "(devel)", "unknown"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := Info{
				Version:   c.wantVersion,
				Commit:    c.wantCommit,
				GoVersion: runtime.Version(),
				Platform:  runtime.GOOS + "/" + runtime.GOARCH,
			}
			if diff := cmp.Diff(want, resolve(c.version, c.commit, c.build)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCollector(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(Info{Version: "v1", Commit: "c", GoVersion: "go1"}.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 1 || families[0].GetName() != "fairlead_build_info" {
		t.Fatalf("got %v", families)
	}
	metric := families[0].GetMetric()[0]
	labels := map[string]string{}
	for _, l := range metric.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	want := map[string]string{"version": "v1", "commit": "c", "go_version": "go1"}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Error(diff)
	}
	if got := metric.GetGauge().GetValue(); got != 1 {
		t.Errorf("value is %v, want 1", got)
	}
}

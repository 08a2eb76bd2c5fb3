// Package version knows which build of Fairlead is running.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Version and Commit are set by the linker:
// -X github.com/fairlead/fairlead/internal/version.Version=v1.2.3
var (
	Version string
	Commit  string
)

// Info identifies a build.
type Info struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Get tells which build this is, from the linker's values or, failing that, from what Go itself recorded.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return resolve(Version, Commit, build)
}

func resolve(version, commit string, build *debug.BuildInfo) Info {
	if build == nil {
		build = &debug.BuildInfo{}
	}
	return Info{
		Version:   cmp.Or(version, build.Main.Version, "(devel)"),
		Commit:    cmp.Or(commit, recordedCommit(build.Settings), "unknown"),
		GoVersion: runtime.Version(),
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func recordedCommit(settings []debug.BuildSetting) string {
	var revision, modified string
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value
		}
	}
	if revision != "" && modified == "true" {
		return revision + "-dirty"
	}
	return revision
}

// Collector is the metric fairlead_build_info: always 1, with the build in its labels.
func (i Info) Collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "fairlead_build_info",
		Help:        "The build of Fairlead that is running, as labels; the value is always 1.",
		ConstLabels: prometheus.Labels{"version": i.Version, "commit": i.Commit, "go_version": i.GoVersion},
	}, func() float64 { return 1 })
}

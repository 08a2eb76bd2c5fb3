package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// platform is a pair of GOOS and GOARCH.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

func (p platform) binary() string {
	if p.os == "windows" {
		return "fairlead.exe"
	}
	return "fairlead"
}

var allPlatforms = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"},
}

func platformNames(platforms []platform) []string {
	var names []string
	for _, p := range platforms {
		names = append(names, p.String())
	}
	return names
}

// parsePlatforms returns them in the order of allPlatforms, in which they are released.
func parsePlatforms(list string) ([]platform, error) {
	asked := strings.Split(list, ",")
	for _, name := range asked {
		if !slices.Contains(platformNames(allPlatforms), name) {
			return nil, fmt.Errorf("platform %q is none of %s", name, strings.Join(platformNames(allPlatforms), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(allPlatforms), func(p platform) bool { return !slices.Contains(asked, p.String()) }), nil
}

const versionPackage = "github.com/fairlead/fairlead/internal/version"

// build compiles the binaries into a directory.
func (r release) build(ctx context.Context, dir string) (programs, error) {
	built := programs{binaries: map[platform]string{}}
	for _, p := range r.platforms {
		began := time.Now()
		output := filepath.Join(dir, p.os+"_"+p.arch, p.binary())
		if err := r.compile(ctx, p, output); err != nil {
			return programs{}, err
		}
		built.binaries[p] = output
		fmt.Fprintf(r.out, "built fairlead for %s in %s\n", p, time.Since(began).Round(time.Second))
	}
	here := platform{runtime.GOOS, runtime.GOARCH}
	runnable := built.binaries[here]
	if runnable == "" {
		runnable = filepath.Join(dir, "host", here.binary())
		if err := r.compile(ctx, here, runnable); err != nil {
			return programs{}, err
		}
	}
	for shell, file := range map[string]string{"bash": "fairlead.bash", "zsh": "_fairlead", "fish": "fairlead.fish", "powershell": "fairlead.ps1"} {
		script, err := exec.CommandContext(ctx, runnable, "completion", shell).Output()
		if err != nil {
			return programs{}, fmt.Errorf("print the completion of %s: %w", shell, withStderr(err))
		}
		built.completions = append(built.completions, entry{name: "completions/" + file, mode: 0o644, content: script})
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return programs{}, fmt.Errorf("find Go's time zones: %w", withStderr(err))
	}
	built.zones = filepath.Join(strings.TrimSpace(string(goroot)), "lib", "time", "zoneinfo.zip")
	return built, nil
}

// compile sets all that changes what the compiler makes, so that the environment of who builds does not matter.
func (r release) compile(ctx context.Context, p platform, output string) error {
	link := fmt.Sprintf("-s -w -X %[1]s.Version=%[2]s -X %[1]s.Commit=%[3]s", versionPackage, r.version, r.source.commit)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags="+r.tags, "-ldflags="+link, "-o", output, "./cmd/fairlead")
	command.Dir = r.root
	command.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off")
	if printed, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build fairlead for %s: %w\n%s", p, err, printed)
	}
	return nil
}

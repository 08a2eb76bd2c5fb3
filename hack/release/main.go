// Command release builds everything that a release of Fairlead consists of, with Go alone: archives of the binary, an image,
// the chart, install.yaml, SBOMs, a manifest for krew and checksums.
//
//	release -version v0.1.0 -dist ../../dist
//
// The same commit and the same version of Go give the same files, byte for byte.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var version, root, dist, only string
	r := release{out: out}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&version, "version", "", "the version, such as v0.1.0")
	flags.StringVar(&root, "root", ".", "directory of the source")
	flags.StringVar(&dist, "dist", "dist", "directory that is emptied and filled")
	flags.StringVar(&r.tags, "tags", "", "build tags")
	flags.StringVar(&r.repository, "image", "fairlead", "repository of the image, with its registry, for the chart and install.yaml")
	flags.StringVar(&r.downloads, "downloads", "https://github.com/fairlead/fairlead/releases/download", "where the archives will be, for krew: URL/VERSION/ARCHIVE")
	flags.StringVar(&only, "platforms", strings.Join(platformNames(allPlatforms), ","), "platforms to build for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if r.version, err = parseVersion(version); err != nil {
		return err
	}
	if r.platforms, err = parsePlatforms(only); err != nil {
		return err
	}
	if r.root, err = filepath.Abs(root); err != nil {
		return err
	}
	if r.dist, err = filepath.Abs(dist); err != nil {
		return err
	}
	if r.source, err = readSource(ctx, r.root, os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	programs, err := os.MkdirTemp("", "fairlead-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs)
	began := time.Now()
	built, err := r.build(ctx, programs)
	if err != nil {
		return err
	}
	if err := r.assemble(built); err != nil {
		return err
	}
	if err := sign(ctx, out, r.dist, keyOf(r.root, os.Getenv("COSIGN_KEY"))); err != nil {
		return err
	}
	fmt.Fprintf(out, "released %s (commit %s) in %s: %s\n", r.version, r.source.commit, time.Since(began).Round(time.Second), r.dist)
	fmt.Fprintf(out, "next: crane push dist/image %s:%s, which is the image that the chart and install.yaml name\n", r.repository, r.version.number())
	if !strings.Contains(r.repository, "/") {
		fmt.Fprintln(out, "IMAGE names no registry: repeat it with IMAGE=REGISTRY/fairlead, or set image.repository when you install the chart")
	}
	return nil
}

// release is what is released, and where it goes.
type release struct {
	version    releaseVersion
	source     source
	root, dist string
	tags       string
	platforms  []platform
	repository string
	downloads  string
	out        io.Writer
}

// programs are the binaries by platform, and the completions of shells that they print.
type programs struct {
	binaries    map[platform]string
	completions []entry
	zones       string // zoneinfo.zip of the Go that built them
}

// assemble fills dist/ from binaries that are built.
func (r release) assemble(built programs) error {
	if err := os.RemoveAll(r.dist); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dist, 0o755); err != nil {
		return err
	}
	archives, err := r.writeArchives(built)
	if err != nil {
		return err
	}
	image, err := r.writeImage(built)
	if err != nil {
		return err
	}
	chart, err := r.writeChart(image.digest)
	if err != nil {
		return err
	}
	if err := r.writeInstallManifest(chart); err != nil {
		return err
	}
	if err := r.writeSBOMs(built, image); err != nil {
		return err
	}
	if err := r.writeKrewManifest(archives); err != nil {
		return err
	}
	return writeChecksums(r.dist)
}

// name of a file of this release, such as fairlead_0.1.0_linux_amd64.tar.gz.
func (r release) name(parts ...string) string {
	return strings.Join(append([]string{"fairlead", r.version.number()}, parts...), "_")
}

func (r release) path(name string) string { return filepath.Join(r.dist, name) }

// imagePlatforms are those of the platforms for which there is an image.
func (r release) imagePlatforms() []platform {
	return slices.DeleteFunc(slices.Clone(r.platforms), func(p platform) bool { return p.os != "linux" })
}

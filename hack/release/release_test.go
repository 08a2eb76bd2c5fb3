package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

var committed = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

// smallProgram is built in the stead of Fairlead.
func smallProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module harbour.test/small\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", "small", ".")
	build.Dir = dir
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	return filepath.Join(dir, "small")
}

// assembled is a release of a program in the stead of Fairlead.
func assembled(t *testing.T, program string) release {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := release{
		version: "v0.1.0", source: source{commit: "0123456789abcdef", time: committed},
		root: root, dist: filepath.Join(t.TempDir(), "dist"), platforms: allPlatforms,
		repository: "registry.test/fairlead", downloads: "https://downloads.test", out: io.Discard,
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	built := programs{
		binaries:    map[platform]string{},
		completions: []entry{{name: "completions/fairlead.bash", mode: 0o644, content: []byte("# bash\n")}, {name: "completions/_fairlead", mode: 0o644, content: []byte("# zsh\n")}},
		zones:       filepath.Join(strings.TrimSpace(string(goroot)), "lib", "time", "zoneinfo.zip"),
	}
	for _, p := range allPlatforms {
		built.binaries[p] = program
	}
	if err := r.assemble(built); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r release) read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(r.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestReleaseHasAllFilesAndIsReproducible(t *testing.T) {
	program := smallProgram(t)
	first, second := assembled(t, program), assembled(t, program)
	if diff := cmp.Diff(string(first.read(t, checksumsFile)), string(second.read(t, checksumsFile))); diff != "" {
		t.Errorf("two releases of one commit differ: %s", diff)
	}
	var names []string
	for line := range strings.Lines(string(first.read(t, checksumsFile))) {
		_, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if !strings.HasPrefix(file, "image/blobs/") {
			names = append(names, file)
		}
	}
	want := []string{
		"fairlead-0.1.0.tgz",
		"fairlead_0.1.0_darwin_amd64.cdx.json", "fairlead_0.1.0_darwin_amd64.tar.gz",
		"fairlead_0.1.0_darwin_arm64.cdx.json", "fairlead_0.1.0_darwin_arm64.tar.gz",
		"fairlead_0.1.0_image.tar",
		"fairlead_0.1.0_image_linux_amd64.cdx.json", "fairlead_0.1.0_image_linux_amd64.tar",
		"fairlead_0.1.0_image_linux_arm64.cdx.json", "fairlead_0.1.0_image_linux_arm64.tar",
		"fairlead_0.1.0_linux_amd64.cdx.json", "fairlead_0.1.0_linux_amd64.tar.gz",
		"fairlead_0.1.0_linux_arm64.cdx.json", "fairlead_0.1.0_linux_arm64.tar.gz",
		"fairlead_0.1.0_windows_amd64.cdx.json", "fairlead_0.1.0_windows_amd64.zip",
		"image/index.json", "image/oci-layout", "install.yaml", "krew.yaml",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}

	t.Run("archives", func(t *testing.T) { first.testArchives(t) })
	t.Run("image", func(t *testing.T) { first.testImage(t) })
	t.Run("tarball of the image", func(t *testing.T) { first.testLayoutTarball(t) })
	t.Run("chart", func(t *testing.T) { first.testChart(t) })
	t.Run("install.yaml", func(t *testing.T) { first.testInstallManifest(t) })
	t.Run("SBOMs", func(t *testing.T) { first.testSBOMs(t) })
	t.Run("krew", func(t *testing.T) { first.testKrew(t) })
}

func (r release) testArchives(t *testing.T) {
	want := []string{"LICENSE -rw-r--r--", "completions/_fairlead -rw-r--r--", "completions/fairlead.bash -rw-r--r--", "fairlead -rwxr-xr-x"}
	unzipped, err := gzip.NewReader(bytes.NewReader(r.read(t, "fairlead_0.1.0_linux_amd64.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for header := range tarHeaders(t, unzipped) {
		got = append(got, header.Name+" "+header.FileInfo().Mode().String())
		if !header.ModTime.Equal(committed) {
			t.Errorf("%s is of %s, not of the commit", header.Name, header.ModTime)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	packed, err := zip.OpenReader(r.path("fairlead_0.1.0_windows_amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	if last := packed.File[len(packed.File)-1]; last.Name != "fairlead.exe" || !last.Modified.Equal(committed) {
		t.Errorf("the last file is %s of %s", last.Name, last.Modified)
	}
}

func tarHeaders(t *testing.T, from io.Reader) func(func(*tar.Header, io.Reader) bool) {
	return func(yield func(*tar.Header, io.Reader) bool) {
		files := tar.NewReader(from)
		for {
			header, err := files.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !yield(header, files) {
				return
			}
		}
	}
}

// layoutIndex is the index that the layout holds.
func (r release) layoutIndex(t *testing.T) (v1.ImageIndex, v1.Hash) {
	t.Helper()
	return indexOf(t, r.path("image"))
}

func indexOf(t *testing.T, directory string) (v1.ImageIndex, v1.Hash) {
	t.Helper()
	outer, err := layout.ImageIndexFromPath(directory)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "0.1.0" {
		t.Fatalf("the layout holds %v", manifest.Manifests)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index, manifest.Manifests[0].Digest
}

func (r release) testImage(t *testing.T) {
	index, digest := r.layoutIndex(t)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		testSystem(t, image)
		// What `crane push` and `docker load` read.
		file := r.path("fairlead_0.1.0_image_" + m.Platform.OS + "_" + m.Platform.Architecture + ".tar")
		loaded, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		ours, _ := image.ConfigName()
		if theirs, err := loaded.ConfigName(); err != nil || theirs != ours {
			t.Errorf("%s holds the image %s, the layout %s: %v", file, theirs, ours, err)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Error(diff)
	}
	// A registry keeps the digest that the chart pins.
	server := httptest.NewServer(registry.New())
	defer server.Close()
	reference, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/fairlead:0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(reference, index); err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Get(reference)
	if err != nil {
		t.Fatal(err)
	}
	if pushed.Digest != digest {
		t.Errorf("the digest is %s in the registry, %s in the layout", pushed.Digest, digest)
	}
}

// testLayoutTarball: the file that is downloaded holds the image of both platforms, with the digest that the chart pins.
func (r release) testLayoutTarball(t *testing.T) {
	packed, err := os.Open(r.path("fairlead_0.1.0_image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked := t.TempDir()
	for header, body := range tarHeaders(t, packed) {
		if !header.ModTime.Equal(committed) {
			t.Errorf("%s is of %s, not of the commit", header.Name, header.ModTime)
		}
		path := filepath.Join(unpacked, header.Name)
		if header.FileInfo().IsDir() {
			if err := os.Mkdir(path, header.FileInfo().Mode()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		content, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
	index, digest := indexOf(t, unpacked)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Error(diff)
	}
	packaged, err := loader.LoadFile(r.path("fairlead-0.1.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if pinned := packaged.Values["image"].(map[string]any)["digest"]; pinned != digest.String() {
		t.Errorf("the chart pins %s, and the tarball holds %s", pinned, digest)
	}
	// Without it, what `docker load` has loaded has no name.
	outer, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	held, err := outer.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if name := held.Manifests[0].Annotations["io.containerd.image.name"]; name != "docker.io/library/fairlead:0.1.0" {
		t.Errorf("Docker would name the image %q", name)
	}
}

// testSystem looks into an image as its program would.
func testSystem(t *testing.T, image v1.Image) {
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/usr/bin/fairlead" || !config.Created.Equal(committed) {
		t.Errorf("%+v", config)
	}
	files := mutate.Extract(image)
	defer files.Close()
	content, modes := map[string][]byte{}, map[string]fs.FileMode{}
	for header, body := range tarHeaders(t, files) {
		if content[header.Name], err = io.ReadAll(body); err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.FileInfo().Mode()
		directory := filepath.Dir(strings.TrimSuffix(header.Name, "/"))
		if _, ok := modes[directory+"/"]; directory != "." && !ok {
			if _, ok := modes[directory]; !ok {
				t.Errorf("%s is in no directory", header.Name)
			}
		}
	}
	if modes["usr/bin/fairlead"] != 0o755 {
		t.Errorf("the program has mode %s", modes["usr/bin/fairlead"])
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("there are no CA certificates")
	}
	if count := bytes.Count(content["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")); count < 100 {
		t.Errorf("there are %d CA certificates", count)
	}
	if _, err := time.LoadLocationFromTZData("Europe/Vienna", content["usr/share/zoneinfo/Europe/Vienna"]); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(content["etc/passwd"]), "nonroot:x:65532:65532:") {
		t.Errorf("users: %s", content["etc/passwd"])
	}
}

func (r release) testChart(t *testing.T) {
	_, digest := r.layoutIndex(t)
	packaged, err := loader.LoadFile(r.path("fairlead-0.1.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if packaged.Metadata.Version != "0.1.0" || packaged.Metadata.AppVersion != "0.1.0" {
		t.Errorf("version %s of the application %s", packaged.Metadata.Version, packaged.Metadata.AppVersion)
	}
	source, err := loader.LoadDir(filepath.Join(r.root, "charts", "fairlead"))
	if err != nil {
		t.Fatal(err)
	}
	want := source.Values
	want["image"].(map[string]any)["repository"] = "registry.test/fairlead"
	want["image"].(map[string]any)["digest"] = digest.String()
	if diff := cmp.Diff(want, packaged.Values); diff != "" {
		t.Error(diff)
	}
	if len(packaged.Templates) != len(source.Templates) || len(packaged.Files) != len(source.Files) {
		t.Errorf("%d templates and %d files of %d and %d", len(packaged.Templates), len(packaged.Files), len(source.Templates), len(source.Files))
	}
}

func (r release) testInstallManifest(t *testing.T) {
	_, digest := r.layoutIndex(t)
	kinds := map[string]int{}
	var first, image string
	for i, document := range strings.Split(string(r.read(t, "install.yaml")), "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Template struct {
					Spec struct{ Containers []struct{ Image string } }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			continue // comments
		}
		if i == 1 {
			first = object.Kind + " " + object.Metadata.Name
		}
		kinds[object.Kind]++
		for _, container := range object.Spec.Template.Spec.Containers {
			image = container.Image
		}
	}
	if first != "Namespace fairlead-system" || kinds["Deployment"] != 1 || kinds["ClusterRole"] == 0 || kinds["Certificate"] != 0 {
		t.Errorf("the first is %s; %v", first, kinds)
	}
	want := "registry.test/fairlead@" + digest.String()
	if image != want {
		t.Errorf("the image is %s, want %s", image, want)
	}
	if head, _, _ := strings.Cut(string(r.read(t, "install.yaml")), "\n---\n"); !strings.Contains(head, "# Nodes pull the image "+want+".") {
		t.Errorf("it does not begin with what nodes pull:\n%s", head)
	}
}

func TestVersionsOfReleases(t *testing.T) {
	for text, valid := range map[string]bool{
		"v0.1.0": true, "v1.2.3-rc.1": true, "0.1.0": false, "v0.1": false, "v0.1.0+build": false, "": false, "59cf596": false, "v0.1.0-dirty": true,
	} {
		if _, err := parseVersion(text); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRefusesChangesThatAreNotCommitted(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first"}} {
		if _, err := git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	if from, err := readSource(t.Context(), dir, "60"); err != nil || len(from.commit) != 40 || from.time.Unix() != 60 {
		t.Errorf("%+v %v", from, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readSource(t.Context(), dir, ""); err == nil || !strings.Contains(err.Error(), "?? new") {
		t.Errorf("%v", err)
	}
}

func TestSign(t *testing.T) {
	dist, tools := t.TempDir(), t.TempDir()
	t.Setenv("PATH", tools)
	signed := func(key string) string {
		var out strings.Builder
		if err := sign(context.Background(), &out, dist, key); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := signed(""); got != "not signed: COSIGN_KEY names no key\n" {
		t.Error(got)
	}
	if got := signed("cosign.key"); !strings.HasPrefix(got, "not signed: COSIGN_KEY names a key, and there is no cosign in PATH") {
		t.Error(got)
	}
	if err := os.WriteFile(filepath.Join(tools, "cosign"), []byte("#!/bin/sh\necho \"$*\" > arguments\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := signed("cosign.key"); got != "signed checksums.txt: checksums.txt.bundle\n" {
		t.Error(got)
	}
	arguments, err := os.ReadFile(filepath.Join(dist, "arguments"))
	if err != nil || string(arguments) != "sign-blob --yes --key cosign.key --bundle checksums.txt.bundle checksums.txt\n" {
		t.Errorf("cosign was called with %q: %v", arguments, err)
	}
}

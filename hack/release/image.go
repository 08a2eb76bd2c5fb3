package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	imageUser   = 65532 // that of runAsUser in the chart
	imageBinary = "usr/bin/fairlead"
)

// writtenImage are the digests of the index and of the image of each platform.
type writtenImage struct {
	digest    string
	platforms map[platform]string
}

// writeImage writes the image of all platforms, whose digest the chart pins, as an OCI layout and as a tarball of it, and for each
// platform a tarball that every `docker load` takes.
func (r release) writeImage(built programs) (writtenImage, error) {
	written := writtenImage{platforms: map[platform]string{}}
	system, err := systemLayer(built.zones, r)
	if err != nil {
		return written, err
	}
	tag, err := name.NewTag("fairlead:" + r.version.number())
	if err != nil {
		return written, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.imagePlatforms() {
		image, err := r.image(p, system, built.binaries[p])
		if err != nil {
			return written, fmt.Errorf("build the image for %s: %w", p, err)
		}
		digest, err := image.Digest()
		if err != nil {
			return written, err
		}
		written.platforms[p] = digest.String()
		if err := tarball.WriteToFile(r.path(r.name("image", p.os, p.arch)+".tar"), tag, image); err != nil {
			return written, fmt.Errorf("write the tarball of the image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	digest, err := index.Digest()
	if err != nil {
		return written, err
	}
	written.digest = digest.String()
	directory, err := layout.Write(r.path("image"), empty.Index)
	if err != nil {
		return written, err
	}
	// Skopeo finds an image by its tag, and containerd, which Docker loads images with, takes the name from an annotation of its own.
	err = directory.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version.number(),
		"io.containerd.image.name":          "docker.io/library/" + tag.String(),
	}))
	if err != nil {
		return written, err
	}
	return written, r.writeLayoutTarball()
}

// writeLayoutTarball packs the OCI layout into one file, which can be downloaded.
func (r release) writeLayoutTarball() error {
	source := os.DirFS(r.path("image"))
	var entries []entry
	err := fs.WalkDir(source, ".", func(name string, file fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case file.IsDir():
			entries = append(entries, entry{name: name + "/", mode: 0o755})
			return nil
		}
		content, err := fs.ReadFile(source, name)
		entries = append(entries, entry{name: name, mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return fmt.Errorf("read the OCI layout: %w", err)
	}
	packed, err := os.Create(r.path(r.name("image") + ".tar"))
	if err != nil {
		return err
	}
	defer packed.Close()
	if err := writeTar(packed, entries, r.source.time); err != nil {
		return fmt.Errorf("write the tarball of the OCI layout: %w", err)
	}
	return packed.Close()
}

func (r release) image(p platform, system v1.Layer, binary string) (v1.Image, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	fairlead, err := r.layer([]entry{{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755}, {name: imageBinary, mode: 0o755, content: program}})
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.source.time}
	image, err := mutate.Append(base,
		mutate.Addendum{Layer: system, History: v1.History{Created: created, CreatedBy: "CA certificates, time zones and the user"}},
		mutate.Addendum{Layer: fairlead, History: v1.History{Created: created, CreatedBy: "fairlead " + string(r.version)}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, created
	config.Config = v1.Config{
		User:       fmt.Sprintf("%[1]d:%[1]d", imageUser),
		Entrypoint: []string{"/" + imageBinary},
		Env:        []string{"PATH=/usr/bin"},
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "fairlead",
			"org.opencontainers.image.version":  string(r.version),
			"org.opencontainers.image.revision": r.source.commit,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

func (r release) layer(entries []entry) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := writeTar(&packed, entries, r.source.time); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
}

// systemLayer is what a program expects of the system it runs on: CA certificates, time zones, a user with a home, and /tmp.
func systemLayer(zones string, r release) (v1.Layer, error) {
	entries := []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", imageUser)},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%[1]d:%[1]d:nonroot:/home/nonroot:/sbin/nologin\n", imageUser)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates()},
		{name: "home/", mode: 0o755},
		{name: "home/nonroot/", mode: 0o700, user: imageUser},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/share/", mode: 0o755},
	}
	timeZones, err := readZones(zones, "usr/share/zoneinfo/")
	if err != nil {
		return nil, err
	}
	return r.layer(append(entries, timeZones...))
}

// certificates are the roots that Mozilla trusts, as PEM. A root that is trusted under a condition is left out: a file of
// certificates cannot say the condition.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return text.Bytes()
}

// readZones unpacks Go's zoneinfo.zip into a directory.
func readZones(file, into string) ([]entry, error) {
	packed, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("read Go's time zones: %w", err)
	}
	defer packed.Close()
	directories := map[string]bool{}
	var entries []entry
	for _, f := range packed.File {
		if f.FileInfo().IsDir() {
			continue
		}
		for directory := path.Dir(into + f.Name); directory+"/" != path.Dir(path.Clean(into))+"/"; directory = path.Dir(directory) {
			if !directories[directory] {
				directories[directory] = true
				entries = append(entries, entry{name: directory + "/", mode: 0o755})
			}
		}
		content, err := readZone(f)
		if err != nil {
			return nil, fmt.Errorf("read the time zone %s: %w", f.Name, err)
		}
		entries = append(entries, entry{name: into + f.Name, mode: 0o644, content: content})
	}
	return entries, nil
}

func readZone(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

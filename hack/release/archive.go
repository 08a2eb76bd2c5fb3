package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file or a directory in an archive or a layer.
type entry struct {
	name    string // of a directory, it ends with a slash
	mode    fs.FileMode
	user    int
	content []byte
}

// archive is a file of the release with the binary for one platform.
type archive struct {
	platform platform
	name     string
}

func (r release) writeArchives(built programs) ([]archive, error) {
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	var archives []archive
	for _, p := range r.platforms {
		binary, err := os.ReadFile(built.binaries[p])
		if err != nil {
			return nil, err
		}
		entries := append(slices.Clone(built.completions),
			entry{name: "LICENSE", mode: 0o644, content: licence},
			entry{name: p.binary(), mode: 0o755, content: binary})
		name, pack := r.name(p.os, p.arch)+".tar.gz", packTarGz
		if p.os == "windows" {
			name, pack = r.name(p.os, p.arch)+".zip", packZip
		}
		packed, err := pack(entries, r.source.time)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(r.path(name), packed, 0o644); err != nil {
			return nil, err
		}
		archives = append(archives, archive{p, name})
	}
	return archives, nil
}

func packTarGz(entries []entry, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	if err := writeTar(zipped, entries, modified); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func writeTar(w io.Writer, entries []entry, modified time.Time) error {
	out := tar.NewWriter(w)
	for _, e := range sorted(entries) {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Uid: e.user, Gid: e.user, Size: int64(len(e.content)), ModTime: modified,
		}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(e.content); err != nil {
			return err
		}
	}
	return out.Close()
}

func packZip(entries []entry, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	out := zip.NewWriter(&packed)
	for _, e := range sorted(entries) {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(e.mode)
		w, err := out.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func sorted(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}

package charts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/downloader"
)

// cache keeps archives by their digest, and which digest each chart had when it was first downloaded.
//
// A damaged or unreadable file counts as missing.
type cache struct{ dir string }

// firstDigestFile is the kind of file that has the first known digest of a chart.
const firstDigestFile = ".digest"

var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// recordKey identifies the chart of a source.
func recordKey(source, name, version string) [sha256.Size]byte {
	return sha256.Sum256([]byte(source + "\n" + name + "\n" + version))
}

// firstDigest is the first known digest of a chart, or "", and the file that has it.
func (c cache) firstDigest(key [sha256.Size]byte) (digest, file string) {
	data, file := c.read(key, firstDigestFile)
	if digest = strings.TrimSpace(string(data)); !sha256Digest.MatchString(digest) {
		return "", file
	}
	return digest, file
}

// archive reads the archive with a digest, or nil.
func (c cache) archive(digest string) []byte {
	var key [sha256.Size]byte
	if _, err := hex.Decode(key[:], []byte(strings.TrimPrefix(digest, "sha256:"))); err != nil || digest == "" {
		return nil
	}
	data, _ := c.read(key, downloader.CacheChart)
	if sha256.Sum256(data) != key {
		return nil
	}
	return data
}

// keep writes an archive and then its digest, so that no digest names a missing archive.
func (c cache) keep(key [sha256.Size]byte, archive []byte) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	disk := downloader.DiskCache{Root: c.dir}
	if _, err := disk.Put(sha256.Sum256(archive), bytes.NewReader(archive), downloader.CacheChart); err != nil {
		return err
	}
	_, err := disk.Put(key, strings.NewReader(digestOf(archive)+"\n"), firstDigestFile)
	return err
}

// forget removes the first known digest of a chart. The archive stays, and does no harm without it.
func (c cache) forget(key [sha256.Size]byte) {
	if digest, file := c.firstDigest(key); digest != "" {
		_ = os.Remove(file) // what cannot be removed is refused again
	}
}

func (c cache) read(key [sha256.Size]byte, kind string) (data []byte, file string) {
	disk := downloader.DiskCache{Root: c.dir}
	file, err := disk.Get(key, kind)
	if err != nil {
		return nil, file
	}
	data, _ = os.ReadFile(file)
	return data, file
}

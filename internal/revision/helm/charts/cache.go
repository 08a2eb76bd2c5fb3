package charts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// cache keeps archives by their digest, and which digest each chart had when it was first downloaded.
//
// A damaged or unreadable file counts as missing.
type cache struct {
	dir string
}

// record identifies an archive.
type record struct {
	Source  string `json:"source"`
	Chart   string `json:"chart"`
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"`
}

var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// digest is the first known digest of a chart, or "".
func (c cache) digest(source, name, version string) string {
	asked := record{Source: source, Chart: name, Version: version}
	data, err := os.ReadFile(c.recordPath(asked))
	if err != nil {
		return ""
	}
	var found record
	if err := json.Unmarshal(data, &found); err != nil || !sha256Digest.MatchString(found.Digest) {
		return ""
	}
	asked.Digest = found.Digest
	if found != asked {
		return ""
	}
	return found.Digest
}

// archive reads the archive with a digest, or nil. A damaged archive is removed.
func (c cache) archive(digest string) []byte {
	if digest == "" {
		return nil
	}
	data, err := os.ReadFile(c.archivePath(digest))
	if err != nil {
		return nil
	}
	if digestOf(data) != digest {
		_ = os.Remove(c.archivePath(digest))
		return nil
	}
	return data
}

// keep writes an archive and then its record, so that no record names a missing archive.
func (c cache) keep(source, name, version string, archive []byte) error {
	r := record{Source: source, Chart: name, Version: version}
	path := c.recordPath(r)
	r.Digest = digestOf(archive)
	if err := replaceFile(c.archivePath(r.Digest), archive); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return replaceFile(path, append(text, '\n'))
}

func (c cache) archivePath(digest string) string {
	return filepath.Join(c.dir, "archives", digest[len("sha256:"):]+".tgz")
}

// recordPath ends in a hash, because sources and names can be of any length and have any character; the file itself says
// which chart is recorded.
func (c cache) recordPath(r record) string {
	sum := sha256.Sum256([]byte(r.Source + "\n" + r.Chart + "\n" + r.Version))
	return filepath.Join(c.dir, "records", r.Chart+"-"+r.Version+"-"+hex.EncodeToString(sum[:8])+".json")
}

// replaceFile puts a whole file in place, or none.
func replaceFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if _, err := file.Write(data); err != nil {
		_ = file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

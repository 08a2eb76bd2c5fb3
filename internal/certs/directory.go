package certs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// directory is one that a Secret is mounted into.
type directory struct{ path string }

func (d directory) String() string { return "directory " + d.path }

// load reads the three files. They change together, but reading them takes several steps: what is read in between does
// not fit together, is refused for that, and read again the next time.
func (d directory) load(context.Context) (*pair, error) {
	data := map[string][]byte{}
	for _, key := range []string{keyCertificate, keyPrivate, keyAuthority} {
		text, err := os.ReadFile(filepath.Join(d.path, key))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		data[key] = text
	}
	return parsePair(data)
}

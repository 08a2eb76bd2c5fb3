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

// load reads the three files. They change together, but are read one by one: if a change comes in between, they do not
// match, are rejected, and are read again at the next poll.
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

package crds

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// locked is what schema.lock says of one CRD.
type locked struct {
	version int
	hash    string
}

// parseLock reads lines of name, version and hash.
func parseLock(text []byte) (map[string]locked, error) {
	all := map[string]locked{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var name string
		var entry locked
		if _, err := fmt.Sscanf(line, "%s %d %s", &name, &entry.version, &entry.hash); err != nil {
			return nil, fmt.Errorf("schema.lock line %d: want name, version and hash, have %q", n, line)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("schema.lock line %d: %s is there twice", n, name)
		}
		all[name] = entry
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read schema.lock: %w", err)
	}
	return all, nil
}

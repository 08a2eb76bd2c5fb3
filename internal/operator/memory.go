package operator

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
)

// limitMemory has the garbage collector stay below the memory limit of the container, with a tenth for what it does not
// manage. GOMEMLIMIT takes precedence.
func limitMemory(root fs.FS, log logr.Logger) {
	limit := memoryLimit(root)
	if limit == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	log.Info("memory is limited", "limit", limit, "GOMEMLIMIT", limit/10*9)
}

// memoryLimit is the least that the cgroups of this process allow, 0 if they do not limit it.
func memoryLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case controllers == "":
		case strings.Contains(","+controllers+",", ",memory,"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// A container may see its own group as the root, and not what is above.
		for group = path.Join("/", group); ; group = path.Dir(group) {
			if limit, err := readLimit(root, path.Join(mount, group, file)); err == nil {
				least = min(least, limit)
			}
			if group == "/" {
				break
			}
		}
	}
	// Without a limit, the first version of cgroups has the largest number of pages.
	if least > math.MaxInt64>>2 {
		return 0
	}
	return least
}

func readLimit(root fs.FS, name string) (int64, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

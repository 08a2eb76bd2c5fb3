package operator

import (
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/go-logr/logr"

	"github.com/fairlead/fairlead/internal/rollout/conversion"
)

func TestMemoryLimit(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		want  int64
	}{
		"no cgroups":                  {nil, 0},
		"in a container":              {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		"in a container without one":  {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"on a machine":                {map[string]string{"proc/self/cgroup": "0::/user.slice\n"}, 0},
		"in a service":                {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "100\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 100},
		"the pod allows less":         {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "100\n", "sys/fs/cgroup/a/memory.max": "50\n"}, 50},
		"the pod allows more":         {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "50\n", "sys/fs/cgroup/a/memory.max": "100\n"}, 50},
		"v1, in a container":          {map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/kubepods/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n"}, 512 << 20},
		"v1, without one":             {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"what is written is no limit": {map[string]string{"proc/self/cgroup": "0::/\n\n:\n", "sys/fs/cgroup/memory.max": "lots\n"}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for file, text := range c.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := memoryLimit(root); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// The garbage collector stays below the memory limit of the container, unless GOMEMLIMIT says otherwise.
func TestMemoryLimitOfGarbageCollector(t *testing.T) {
	limited := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte("1000000000\n")}}
	const before = 5_000_000_000
	for name, c := range map[string]struct {
		root     fstest.MapFS
		variable string
		want     int64
	}{
		"in a container":  {limited, "", 900_000_000},
		"without a limit": {fstest.MapFS{}, "", before},
		"with GOMEMLIMIT": {limited, "4GiB", before},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", c.variable)
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(before))
			limitMemory(c.root, logr.Discard())
			if got := debug.SetMemoryLimit(-1); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

func TestConversionMemory(t *testing.T) {
	cases := map[string]struct {
		flag        string
		limit, want int64
	}{
		"no limit":            {"", 0, conversion.DefaultMemory},
		"a quarter":           {"", 2 << 30, 512 << 20},
		"never too little":    {"", 64 << 20, conversion.MinMemory},
		"the flag":            {"64Mi", 2 << 30, 64 << 20},
		"the flag in decimal": {"100M", 0, 100_000_000},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := defaultWebhookOptions()
			options.Memory = c.flag
			if err := options.validate(); err != nil {
				t.Fatal(err)
			}
			if got := options.conversionMemory(c.limit); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

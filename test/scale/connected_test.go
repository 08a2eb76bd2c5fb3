package scale_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// maxGrowthPerProxy is by how much more each proxy may take when there are four times as many.
const maxGrowthPerProxy = 1.25

// BenchmarkConnectedProxies measures the memory of an operator with 1,000, 2,000 and 4,000 connected proxies, each of which
// reaches 50 services and has a TLS connection of its own, while the mode of their Mesh changes.
func BenchmarkConnectedProxies(b *testing.B) {
	c := cluster.Start(b, cluster.Options{Profile: "hub"})
	admin, err := harness.NewAdminClient(c)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		files, address := newCertificates(b), freeAddress(b)
		operator := startMeshOperator(b, c, append(files.flags(), "--leader-elect=false", "--mesh-bind-address", address)...)
		fillMesh(b, admin, 0, meshServices)
		try(b, func(ctx context.Context) error { return addressed(ctx, admin) })
		idle, err := memoryOf(operator.Pid(), "VmRSS")
		if err != nil {
			b.Fatal(err)
		}
		rows := [][]string{{"connected proxies", "memory, connected", "memory while the mode changes, at most", "of it, each proxy", "limit"}}
		var proxies []*lightProxy
		known, first := meshServices, 0.0
		ids := meshIDs(0, meshServices)
		for _, n := range []int{1000, 2000, 4000} {
			ids = append(ids, fillMesh(b, admin, known, n)...)
			known = n
			proxies = append(proxies, connectEach(b, address, ids[len(proxies):], files)...)
			reported(b, proxies, kumav1alpha1.ModeDisabled, time.Time{})
			connected, err := memoryOf(operator.Pid(), "VmRSS")
			if err != nil {
				b.Fatal(err)
			}
			remembered := watchMemory(b.Context(), operator.Pid())
			for _, mode := range []kumav1alpha1.Mode{kumav1alpha1.ModeEverywhere, kumav1alpha1.ModeDisabled} {
				began := time.Now()
				setMode(b, admin, mode)
				reported(b, proxies, mode, began)
			}
			used, err := remembered()
			if err != nil {
				b.Fatal(err)
			}
			each, limit := (used.peak-idle)/float64(n), ""
			switch {
			case first == 0:
				first, limit = each, fmt.Sprintf("%d MiB", maxConnectedMemory)
				if used.peak > maxConnectedMemory {
					b.Errorf("with %d proxies the operator had %.0f MiB, want %d MiB at most", n, used.peak, maxConnectedMemory)
				}
			default:
				limit = fmt.Sprintf("%.0f KiB each", 1024*first*maxGrowthPerProxy)
				if each > first*maxGrowthPerProxy {
					b.Errorf("with %d proxies each takes %.0f KiB, and %.0f KiB with 1,000", n, 1024*each, 1024*first)
				}
			}
			rows = append(rows, []string{fmt.Sprint(n), fmt.Sprintf("%.0f MiB", connected), fmt.Sprintf("%.0f MiB", used.peak), fmt.Sprintf("%.0f KiB", 1024*each), limit})
			b.ReportMetric(used.peak, fmt.Sprintf("MiB-%d", n))
		}
		printRows(fmt.Sprintf("proxies that reach %d of %d services each, over TLS; %.0f MiB before the first", meshReachable, meshServices, idle), rows...)
		operator.Kill()
	}
}

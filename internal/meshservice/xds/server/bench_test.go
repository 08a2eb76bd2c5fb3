package server

import (
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// BenchmarkConnected changes the configurations of 1,000 connected proxies at once, with new clusters in each, until all
// have acknowledged. They and the server share the machine.
func BenchmarkConnected(b *testing.B) {
	const proxies, reachable = 1000, 50
	for name, delta := range protocols {
		b.Run(name, func(b *testing.B) {
			first, second := generation("a", reachable), generation("b", reachable)
			store := NewStore()
			acknowledged := make(chan model.ProxyID, 100*proxies)
			store.OnChange(func(id model.ProxyID) {
				if store.Connection(id).Current {
					acknowledged <- id
				}
			})
			all := func(what string) {
				b.Helper()
				seen := map[model.ProxyID]bool{}
				deadline := time.After(wait.Deadline())
				for len(seen) < proxies {
					select {
					case id := <-acknowledged:
						if store.Connection(id).Current {
							seen[id] = true
						}
					case <-deadline:
						b.Fatalf("%s: only %d proxies within %s", what, len(seen), wait.Deadline())
					}
				}
			}
			address := serve(b, Options{Store: store}, nil)
			var ids []model.ProxyID
			var connection *grpc.ClientConn
			for i := range proxies {
				id := model.ProxyID{Mesh: "default", Namespace: "shop", Name: fmt.Sprintf("proxy-%d", i)}
				ids = append(ids, id)
				store.Set(id, first)
				if i%50 == 0 {
					connection = dial(b, address, nil)
				}
				m := connect(b, connection, id.String(), delta)
				m.mu.Lock()
				m.follows = true
				m.mu.Unlock()
				m.ask(resource.Cluster)
				m.ask(resource.Listener)
			}
			all("the first configuration")
			var set, worst time.Duration
			for i := 0; b.Loop(); i++ {
				next := second
				if i%2 == 1 {
					next = first
				}
				began := time.Now()
				for _, id := range ids {
					store.Set(id, next)
				}
				set += time.Since(began)
				all("the change")
				worst = max(worst, time.Since(began))
			}
			b.ReportMetric(float64(set.Milliseconds())/float64(b.N), "ms/set-all")
			b.ReportMetric(worst.Seconds(), "s/worst")
		})
	}
}

// generation has clusters of its own, and listeners and routes that lead there.
func generation(name string, n int) *resource.Config {
	all := map[resource.Type][]*resource.Resource{}
	for i := range n {
		target, cluster := fmt.Sprintf("service-%d.mesh:80", i), fmt.Sprintf("%s-%d_shop_east_default_msvc_80", name, i)
		all[resource.Cluster] = append(all[resource.Cluster], callers.Cluster(cluster))
		all[resource.Endpoint] = append(all[resource.Endpoint], callers.Endpoints(cluster, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 80}))
		all[resource.Listener] = append(all[resource.Listener], callers.Listener(target, target))
		all[resource.Route] = append(all[resource.Route], callers.Route(target, cluster))
	}
	return resource.NewConfig(all)
}

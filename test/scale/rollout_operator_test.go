package scale_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// hub is a cluster where nothing runs, for Materializes, and where an operator finds it.
type hub struct {
	client.WithWatch
	cluster *cluster.Cluster
	kube    kubernetes.Interface
	fleet   *environmentd.Fleet
	// metrics and webhook are the same for every operator, as behind a Service.
	metrics, webhook string
	// revision of the cluster before the API server has forgotten what it held in memory.
	revision string
}

func newHub(b *testing.B) *hub {
	b.Helper()
	h := &hub{
		cluster: cluster.Start(b, cluster.Options{Profile: "hub"}), fleet: environmentd.Start(),
		metrics: freeAddress(b), webhook: freeAddress(b),
	}
	b.Cleanup(h.fleet.Close)
	var err error
	if h.WithWatch, err = harness.NewAdminClient(h.cluster); err != nil {
		b.Fatal(err)
	}
	if h.kube, err = kubernetes.NewForConfig(h.cluster.Config()); err != nil {
		b.Fatal(err)
	}
	return h
}

func freeAddress(b *testing.B) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// operator starts one that looks after rollouts alone, and ends with the benchmark at the latest.
func (h *hub) operator(b *testing.B, flags ...string) *harness.Operator {
	b.Helper()
	p, err := harness.StartOperator(b.TempDir(), append([]string{
		"--kubeconfig", h.cluster.Kubeconfig(), "--passages", v1alpha2.PassageRollout, "--environmentd-url", h.fleet.URL(),
		"--metrics-insecure-bind-address", h.metrics, "--webhook-bind-address", h.webhook,
	}, flags...)...)
	if err != nil {
		b.Fatal(err)
	}
	p.KeepLogOnFailure(b)
	b.Cleanup(p.Kill)
	return p
}

// served waits until Materializes can be listed.
func (h *hub) served(b *testing.B, p *harness.Operator) {
	b.Helper()
	err := wait.Try(b.Context(), func(ctx context.Context) error {
		if err := p.Alive(); err != nil {
			return err
		}
		return h.List(ctx, &v1alpha2.MaterializeList{}, client.Limit(1))
	})
	if err != nil {
		b.Fatal(err)
	}
}

// printRows prints numbers as Markdown.
func printRows(title string, rows ...[]string) {
	rule := make([]string, len(rows[0]))
	for i := range rule {
		rule[i] = "---"
	}
	fmt.Printf("\n%s\n%s\n", title, aligned(append([][]string{rows[0], rule}, rows[1:]...)))
}

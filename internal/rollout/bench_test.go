package rollout

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkUnchanged is what it costs to find out that there is nothing to do: an operator that starts does so for every
// environment.
func BenchmarkUnchanged(b *testing.B) {
	c := newCluster(b)
	c.run(at(100), func() bool { return true }, 0)
	ctx := ctrl.LoggerInto(context.Background(), logr.Discard())
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.m)}
	writes := c.writes
	b.ReportAllocs()
	for b.Loop() {
		if result, err := c.process.reconciler.Reconcile(ctx, request); err != nil || result.RequeueAfter != 0 {
			b.Fatal(result, err)
		}
	}
	if c.writes != writes {
		b.Errorf("%d writes", c.writes-writes)
	}
}

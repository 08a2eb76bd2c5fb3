//go:build unix

package scale_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/growth"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	maxShare = 0.25
	maxEvent = time.Millisecond
)

// BenchmarkUsage is what it costs to know who uses which revision in a cluster of 20,000 pods in 1,000 namespaces.
func BenchmarkUsage(b *testing.B) {
	c := cluster.Start(b, cluster.Options{Profile: "hub"})
	if _, err := crds.Install(b.Context(), c.Config(), crds.Options{Timeout: wait.Deadline()}); err != nil {
		b.Fatal(err)
	}
	fill(b, c.Config())
	b.Run("memory", func(b *testing.B) { benchmarkMemory(b, c) })
	b.Run("event", func(b *testing.B) { benchmarkEvent(b, c) })
}

// benchmarkMemory compares the caches that the operator needs with what caching the same objects whole costs.
func benchmarkMemory(b *testing.B, c *cluster.Cluster) {
	for b.Loop() {
		whole := heapOf(func() (any, func()) { return cacheWhole(b, c.Config()) })
		slim := heapOf(func() (any, func()) { return track(b, c.Config()) })
		share := slim / whole
		b.ReportMetric(whole, "MB-whole")
		b.ReportMetric(slim, "MB-fairlead")
		b.ReportMetric(share, "share")
		if share > maxShare {
			b.Errorf("to know who uses revisions takes %.1f MB, which is %.2f of the %.1f MB that whole pods take: more than %.2f",
				slim, share, whole, maxShare)
		}
	}
}

// benchmarkEvent measures the processor time of this process, which does what the operator does about a pod's event:
// it receives and decodes it, puts it into the cache, into the account and into a controller's queue. The API server
// and who writes to it are processes of their own, so that their time does not count.
func benchmarkEvent(b *testing.B, c *cluster.Cluster) {
	for round := 1; b.Loop(); round++ {
		t, stop := track(b, c.Config())
		revision := fmt.Sprintf("default-v1-31-%d", round)
		runtime.GC()
		start := growth.ProcessorTime(b)

		writer := exec.CommandContext(b.Context(), os.Args[0])
		writer.Env = append(os.Environ(), writerVariable+"="+c.Kubeconfig(), revisionVariable+"="+revision)
		if output, err := writer.CombinedOutput(); err != nil {
			b.Fatalf("write events: %v\n%s", err, output)
		}
		wait.Until(b, func(context.Context) error {
			if seen := t.updates.Load(); seen < events {
				return fmt.Errorf("saw %d of %d events", seen, events)
			}
			return nil
		})
		each := (growth.ProcessorTime(b) - start) / events
		if moved := t.Revision(revision).Pods; moved != namespaces {
			b.Errorf("%d pods have moved to the new revision, want %d", moved, namespaces)
		}
		stop()
		b.ReportMetric(float64(each.Nanoseconds())/1000, "cpu-µs/event")
		if each > maxEvent {
			b.Errorf("an event takes %s of processor time: more than %s", each, maxEvent)
		}
	}
}

// heapOf is how many MB stay in use for what is started.
func heapOf(start func() (started any, stop func())) float64 {
	before := heap()
	started, stop := start()
	after := heap()
	runtime.KeepAlive(started)
	stop()
	return (after - before) / (1 << 20)
}

func heap() float64 {
	// Twice, because what has a finalizer goes in the second round.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func cacheWhole(b *testing.B, config *rest.Config) (cache.Cache, func()) {
	scheme := k8sruntime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	whole, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	for _, object := range []client.Object{&corev1.Pod{}, &corev1.Namespace{}} {
		if _, err := whole.GetInformer(b.Context(), object); err != nil {
			b.Fatal(err)
		}
	}
	return whole, run(b, whole)
}

// tracking is what the operator has: its caches, the account, and a controller that is told.
type tracking struct {
	*usage.Tracker
	cache   cache.Cache
	updates atomic.Int64
}

func track(b *testing.B, config *rest.Config) (*tracking, func()) {
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{v1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	t := &tracking{}
	var err error
	kept := usage.TemplateCacheOptions(usage.CacheOptions())
	if t.cache, err = cache.New(config, cache.Options{Scheme: scheme, ByObject: kept}); err != nil {
		b.Fatal(err)
	}
	if t.Tracker, err = usage.NewTracker(b.Context(), t.cache, t.cache, t.cache); err != nil {
		b.Fatal(err)
	}
	queue := priorityqueue.New[reconcile.Request]("scale")
	if err := t.Source().Start(b.Context(), queue); err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			request, shutdown := queue.Get()
			if shutdown {
				return
			}
			_ = t.Revision(request.Name).String()
			queue.Done(request)
		}
	}()
	pods := &metav1.PartialObjectMetadata{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	informer, err := t.cache.GetInformer(b.Context(), pods, cache.BlockUntilSynced(false))
	if err != nil {
		b.Fatal(err)
	}
	count := toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { t.updates.Add(1) }}
	if _, err := informer.AddEventHandler(count); err != nil {
		b.Fatal(err)
	}
	stop := run(b, t.cache)
	if err := t.Source().(source.SyncingSource).WaitForSync(b.Context()); err != nil {
		b.Fatal(err)
	}
	return t, func() {
		stop()
		queue.ShutDown()
	}
}

// run starts a cache, waits until it has everything, and returns how to end it.
func run(b *testing.B, c cache.Cache) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = c.Start(ctx) })
	if !c.WaitForCacheSync(ctx) {
		b.Fatal("the cache did not sync")
	}
	return func() {
		cancel()
		ended.Wait()
	}
}

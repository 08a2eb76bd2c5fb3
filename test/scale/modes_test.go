package scale_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	meshName, meshNamespace = "default", "kuma-system"

	meshProxies, meshServices, meshReachable = 1000, 120, 50
	// maxModeChange is how long it may take until every proxy has acknowledged what another mode of the Mesh means for it.
	maxModeChange = 5 * time.Second
	// maxConnectedMemory is what an operator may take with 1,000 connected proxies, in MiB.
	maxConnectedMemory = 250
	// still is how long nobody may be told anything until all is taken to be told.
	still = time.Second
)

// BenchmarkModeChange edits the mode of a Mesh, and waits until 1,000 connected proxies, each of which reaches 50 of 120
// services, have acknowledged what that means for them. The API server, the operator and the proxies share the machine.
func BenchmarkModeChange(b *testing.B) {
	c := cluster.Start(b, cluster.Options{Profile: "hub"})
	admin, err := harness.NewAdminClient(c)
	if err != nil {
		b.Fatal(err)
	}
	address := freeAddress(b)
	operator := startMeshOperator(b, c, "--leader-elect=false", "--mesh-bind-address", address, "--mesh-insecure")
	ids := fillMesh(b, admin, 0, meshProxies)
	try(b, func(ctx context.Context) error { return addressed(ctx, admin) })
	proxies := connectAll(b, address, ids)
	reported(b, proxies, kumav1alpha1.ModeDisabled, time.Time{})

	changes := []kumav1alpha1.Mode{
		kumav1alpha1.ModeReachableBackendRefs, kumav1alpha1.ModeExclusive, kumav1alpha1.ModeEverywhere, kumav1alpha1.ModeDisabled,
	}
	worst := map[kumav1alpha1.Mode]time.Duration{}
	// made is how long, of the change from Disabled, it takes until there are MeshServices with their addresses.
	var made time.Duration
	remembered := watchMemory(b.Context(), operator.Pid())
	for b.Loop() {
		for _, mode := range changes {
			began := time.Now()
			setMode(b, admin, mode)
			if mode == changes[0] {
				try(b, func(ctx context.Context) error { return generated(ctx, admin) })
				made = max(made, time.Since(began))
			}
			worst[mode] = max(worst[mode], reported(b, proxies, mode, began))
		}
	}
	used, err := remembered()
	if err != nil {
		b.Fatal(err)
	}
	rows := [][]string{{"to", "until the last proxy has acknowledged", "limit"}}
	if used.peak > maxConnectedMemory {
		b.Errorf("the operator had %.0f MiB, want %d MiB at most", used.peak, maxConnectedMemory)
	}
	for _, mode := range changes {
		rows = append(rows, []string{string(mode), worst[mode].Round(10 * time.Millisecond).String(), maxModeChange.String()})
		b.ReportMetric(worst[mode].Seconds(), "s/to-"+string(mode))
		if worst[mode] > maxModeChange {
			b.Errorf("to %s it took %s, want %s at most", mode, worst[mode], maxModeChange)
		}
	}
	printRows(fmt.Sprintf("%d connected proxies with %d of %d services each, whose MeshServices had addresses after %s; the operator's memory: %s",
		meshProxies, meshReachable, meshServices, made.Round(10*time.Millisecond), used), rows...)
	b.ReportMetric(made.Seconds(), "s/generated")
	b.ReportMetric(used.peak, "MiB-operator")
}

// fillMesh makes a Mesh with the Dataplanes from one to another, once the operator has installed what they are.
func fillMesh(b *testing.B, admin client.Client, from, to int) []model.ProxyID {
	b.Helper()
	try(b, func(ctx context.Context) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meshNamespace}}
		if err := admin.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		return admin.List(ctx, &kumav1alpha1.DataplaneList{}, client.Limit(1))
	})
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: meshName}}
	if err := admin.Create(b.Context(), mesh); client.IgnoreAlreadyExists(err) != nil {
		b.Fatal(err)
	}
	numbers, failed := make(chan int), make(chan error, to-from)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for i := range numbers {
				failed <- admin.Create(b.Context(), meshDataplane(i))
			}
		})
	}
	for i := from; i < to; i++ {
		numbers <- i
	}
	close(numbers)
	writers.Wait()
	for range to - from {
		if err := <-failed; err != nil {
			b.Fatal(err)
		}
	}
	return meshIDs(from, to)
}

func meshIDs(from, to int) []model.ProxyID {
	var ids []model.ProxyID
	for i := from; i < to; i++ {
		ids = append(ids, model.ProxyID{Mesh: meshName, Name: meshDataplane(i).Name})
	}
	return ids
}

func meshDataplane(i int) *kumav1alpha1.Dataplane {
	service := func(n int) string { return fmt.Sprintf("service-%d", n%meshServices) }
	reaches := &kumav1alpha1.TransparentProxying{ReachableBackendRefs: &kumav1alpha1.BackendRefs{}}
	for n := range meshReachable {
		reaches.ReachableServices = append(reaches.ReachableServices, service(i+n))
		reaches.ReachableBackendRefs.Items = append(reaches.ReachableBackendRefs.Items,
			kumav1alpha1.ReachableBackendRef{Kind: kumav1alpha1.MeshServiceKind, Name: service(i + n)})
	}
	return &kumav1alpha1.Dataplane{
		ObjectMeta: metav1.ObjectMeta{Namespace: meshNamespace, Name: fmt.Sprintf("proxy-%d", i)},
		Spec: kumav1alpha1.DataplaneSpec{Networking: kumav1alpha1.Networking{
			Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), TransparentProxying: reaches,
			Inbound: []kumav1alpha1.Inbound{{
				Port: 8080, Tags: map[string]string{kumav1alpha1.TagService: service(i), kumav1alpha1.TagProtocol: "http"},
			}},
		}},
	}
}

// addressed is an error until every tag has its address.
func addressed(ctx context.Context, reader client.Reader) error {
	var record corev1.ConfigMap
	if err := reader.Get(ctx, client.ObjectKey{Namespace: meshNamespace, Name: desired.VIPConfigMap(meshName)}, &record); err != nil {
		return err
	}
	if len(record.Data) != meshServices {
		return fmt.Errorf("%d of %d tags have an address", len(record.Data), meshServices)
	}
	return nil
}

// generated is an error until every service has a MeshService with an address.
func generated(ctx context.Context, reader client.Reader) error {
	var list kumav1alpha1.MeshServiceList
	if err := reader.List(ctx, &list, client.InNamespace(meshNamespace)); err != nil {
		return err
	}
	n := 0
	for i := range list.Items {
		if len(list.Items[i].Status.VIPs) > 0 {
			n++
		}
	}
	if n != meshServices {
		return fmt.Errorf("%d of %d services have a MeshService with an address", n, meshServices)
	}
	return nil
}

// reported waits until every proxy listens for what a mode gives it and nobody is told anything more, and says how long after the
// beginning the last one acknowledged something. When it returns, what is not used any more is gone as well.
func reported(b *testing.B, proxies []*lightProxy, mode kumav1alpha1.Mode, began time.Time) time.Duration {
	b.Helper()
	want := tally{meshReachable, meshReachable}
	switch mode {
	case kumav1alpha1.ModeDisabled:
		want.services = 0
	case kumav1alpha1.ModeExclusive:
		want.tags = 0
	}
	var last time.Time
	try(b, func(context.Context) error {
		last = time.Time{}
		for _, p := range proxies {
			p.mu.Lock()
			has, when, ended := p.listeners, p.last, p.ended
			p.mu.Unlock()
			if ended != nil || has != want || when.Before(began) {
				return fmt.Errorf("in %s, %s listens for %+v, want %+v (its stream: %v)", mode, p.id, has, want, ended)
			}
			if when.After(last) {
				last = when
			}
		}
		if quiet := time.Since(last); quiet < still {
			return fmt.Errorf("somebody was told something %s ago", quiet)
		}
		return nil
	})
	try(b, func(context.Context) error {
		for _, p := range proxies {
			p.mu.Lock()
			has := p.clusters
			p.mu.Unlock()
			if has != want {
				return fmt.Errorf("in %s, %s has clusters for %+v, want %+v", mode, p.id, has, want)
			}
		}
		return nil
	})
	return last.Sub(began)
}

func try(b *testing.B, what func(context.Context) error) {
	b.Helper()
	if err := wait.Try(b.Context(), what); err != nil {
		b.Fatal(err)
	}
}

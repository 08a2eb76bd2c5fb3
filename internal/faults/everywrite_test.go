package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestMain(m *testing.M) {
	// Processes that are cut off complain a lot.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	cluster.Parallel(6)
	os.Exit(cluster.RunWith(m, cluster.Options{Profile: "hub", KeepNamespaces: true}))
}

func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		restaurant restaurant
		// what must be heard; nothing about a waiter who does it right
		complaints []string
	}{
		"resumable": {
			restaurant: restaurant{version: waiter.resumable, dishes: 2, mostDishes: 2},
		},
		"counts what it does before it notes that it has": {
			restaurant: restaurant{version: waiter.countsBeforeNoting, dishes: 1},
			complaints: []string{
				"cut after write 1 of 2: the end state differs (-undisturbed +disturbed):",
				"cut before write 2 of 2: the end state differs (-undisturbed +disturbed):",
				"never sent, the process was cut off here",
				"201, but the process was cut off before it heard",
			},
		},
		"makes what it cannot find again": {
			restaurant: restaurant{version: waiter.forgetsNames, dishes: 1},
			complaints: []string{"cut after write 1 of 2: the end state differs", "Secret NS/dish-* #2"},
		},
		"notes what it has not done yet": {
			restaurant: restaurant{version: waiter.notesTooEarly, dishes: 1, timeout: 3 * time.Second},
			complaints: []string{"cut after write 1 of 2: started again: the end state was not reached in time: 0 of 1 dishes are there"},
		},
		"writes although there is nothing to do": {
			restaurant: restaurant{version: waiter.notesTooEarly, dishes: 1, ignoresNotes: true},
			complaints: []string{"started again with nothing left to do, the process wrote:\n  1  patch configmaps"},
		},
		"never comes to rest": {
			restaurant: restaurant{version: waiter.restless, dishes: 1, ignoresNotes: true, timeout: 3 * time.Second},
			complaints: []string{"undisturbed run: the end state was reached, but the process does not come to rest"},
		},
		"breaks the invariant on its way": {
			restaurant: restaurant{version: waiter.resumable, dishes: 2, mostDishes: 1},
			complaints: []string{"undisturbed run: invariant broken: 2 dishes on one table"},
		},
	}
	c := cluster.Shared(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard := listen(t, func(t testing.TB) { CrashAtEveryWrite(t, tc.restaurant.scenario(t, c)) })
			for _, complaint := range tc.complaints {
				if !strings.Contains(heard, complaint) {
					t.Errorf("not reported: %s\nheard: %s", complaint, heard)
				}
			}
			if len(tc.complaints) == 0 && heard != "" {
				t.Errorf("blamed without cause: %s", heard)
			}
		})
	}
}

func TestDisturbEveryWrite(t *testing.T) {
	t.Parallel()
	r := restaurant{version: waiter.resumable, dishes: 2}
	DisturbEveryWrite(t, r.scenario(t, cluster.Shared(t)),
		Conflict(), TooManyRequests(0), InternalError(), Delay(100*time.Millisecond))
}

// What does not depend on a cluster: how worlds and processes are handled.
func TestEveryWriteHandlesProcesses(t *testing.T) {
	t.Parallel()
	write := func(ctx context.Context, cfg *rest.Config) error {
		clients, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return err
		}
		_, err = clients.CoreV1().ConfigMaps("shop").Update(ctx, cart(), metav1.UpdateOptions{})
		return err
	}
	tests := map[string]struct {
		run        func(context.Context, *rest.Config) error
		pick       func(int, Log) bool
		worlds     int
		complaints string
	}{
		"one that ends when its work is done": {
			run: write, worlds: 3,
		},
		"one of whose two writes only the second is picked": {
			run: func(ctx context.Context, cfg *rest.Config) error {
				return errors.Join(write(ctx, cfg), write(ctx, cfg))
			},
			pick:   func(k int, writes Log) bool { return k == 2 && len(writes) == 2 && writes[k-1].Name == cart().Name },
			worlds: 3,
		},
		"one that writes nothing": {
			run:        func(context.Context, *rest.Config) error { return nil },
			worlds:     1,
			complaints: "the undisturbed run wrote nothing",
		},
		"one that only the first time has something to write": {
			run: once(write), worlds: 3,
			complaints: "cut before write 1 of 1: nothing was disturbed",
		},
		"one that fails without being disturbed": {
			run:        func(context.Context, *rest.Config) error { return errors.New("no bread") },
			worlds:     1,
			complaints: "undisturbed run: the process ended: no bread",
		},
		"one that does not stop": {
			run: func(ctx context.Context, cfg *rest.Config) error {
				write(ctx, cfg)
				select {}
			},
			worlds:     1,
			complaints: "undisturbed run: the process did not stop when its context ended",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var made, removed int
			s := Scenario{
				Config: &rest.Config{Host: newServer(t).URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
				Setup: func(testing.TB) World {
					made++
					return World{
						Run:      tc.run,
						Settled:  func(context.Context) error { return nil },
						Snapshot: func(context.Context) (map[string]string, error) { return nil, nil },
						Teardown: func() { removed++ },
					}
				},
				Pick:          tc.pick,
				RestartWrites: true,
				Timeout:       time.Second,
			}
			heard := listen(t, func(t testing.TB) { CrashAtEveryWrite(t, s) })
			if tc.complaints == "" && heard != "" || !strings.Contains(heard, tc.complaints) {
				t.Errorf("heard %q, want %q", heard, tc.complaints)
			}
			if made != tc.worlds || removed != tc.worlds {
				t.Errorf("%d worlds made and %d removed, want %d", made, removed, tc.worlds)
			}
		})
	}
}

// once is a process that works in its first life, and has nothing to do in any later one.
func once(run func(context.Context, *rest.Config) error) func(context.Context, *rest.Config) error {
	var lives atomic.Int32
	return func(ctx context.Context, cfg *rest.Config) error {
		if lives.Add(1) > 1 {
			return nil
		}
		return run(ctx, cfg)
	}
}

// listen runs a test helper and returns what it reports as failures, which must
// not become failures of the test that provokes them.
func listen(t testing.TB, helper func(testing.TB)) string {
	ear := &ear{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		helper(ear)
	}()
	<-done
	return ear.heard.String()
}

type ear struct {
	testing.TB
	mu    sync.Mutex
	heard strings.Builder
}

func (e *ear) Errorf(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fmt.Fprintf(&e.heard, format+"\n", args...)
}

func (e *ear) Fatalf(format string, args ...any) {
	e.Errorf(format, args...)
	runtime.Goexit()
}

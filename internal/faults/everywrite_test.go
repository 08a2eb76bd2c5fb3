package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// How runs and processes are handled, against a server in memory and with a clock that need not be waited for.
func TestEveryWriteHandlesProcesses(t *testing.T) {
	write := func(ctx context.Context, cfg *rest.Config) error {
		clients, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return err
		}
		_, err = clients.CoreV1().ConfigMaps("shop").Update(ctx, cart(), metav1.UpdateOptions{})
		return err
	}
	settled := func(int) error { return nil }
	tests := map[string]struct {
		run        func(context.Context, *rest.Config) error
		settled    func(world int) error
		pick       func(int, Log) bool
		strict     bool // about writes after a restart
		worlds     int
		complaints string
	}{
		"one that ends when its work is done": {
			run: write, settled: settled, worlds: 3,
		},
		"one of whose two writes only the second is picked": {
			run: func(ctx context.Context, cfg *rest.Config) error {
				return errors.Join(write(ctx, cfg), write(ctx, cfg))
			},
			settled: settled,
			pick:    func(k int, writes Log) bool { return k == 2 && len(writes) == 2 && writes[k-1].Name == cart().Name },
			worlds:  3,
		},
		"one that is done, to all appearances, before its last write": {
			run: once(func(ctx context.Context, cfg *rest.Config) error {
				return errors.Join(write(ctx, cfg), write(ctx, cfg))
			}),
			settled: settled,
			pick:    func(int, Log) bool { return false },
			strict:  true, worlds: 1,
			complaints: "Settled must ask for more:\nupdate configmaps shop/cart -> 200\nupdate configmaps shop/cart -> 200",
		},
		"one that writes nothing": {
			run:        func(context.Context, *rest.Config) error { return nil },
			settled:    settled,
			worlds:     1,
			complaints: "the undisturbed run wrote nothing",
		},
		"one that only the first time has something to write": {
			run: once(write), settled: settled, worlds: 3,
			complaints: "cut before write 1 of 1: nothing was disturbed",
		},
		"one that fails without being disturbed": {
			run:        func(context.Context, *rest.Config) error { return errors.New("no bread") },
			settled:    settled,
			worlds:     1,
			complaints: "undisturbed run: the process ended: no bread",
		},
		"one that does not stop": {
			run: func(ctx context.Context, cfg *rest.Config) error {
				write(ctx, cfg)
				time.Sleep(time.Hour)
				return nil
			},
			settled:    settled,
			worlds:     1,
			complaints: "undisturbed run: the process did not stop when its context ended",
		},
		"one that never comes to rest": {
			run: func(ctx context.Context, cfg *rest.Config) error {
				for ctx.Err() == nil {
					write(ctx, cfg)
					time.Sleep(20 * time.Millisecond)
				}
				return nil
			},
			settled:    settled,
			worlds:     1,
			complaints: "undisturbed run: the end state was reached, but the process does not come to rest",
		},
		"one that does not get there after a crash": {
			run: write,
			settled: func(world int) error {
				if world > 1 {
					return errors.New("no bread")
				}
				return nil
			},
			worlds:     3,
			complaints: "cut before write 1 of 1: started again: the end state was not reached in time: no bread",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made, removed int
				s := Scenario{
					Config: &rest.Config{Host: "http://memory", Transport: &server{}, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
					Setup: func(testing.TB) World {
						made++
						return World{
							Run:      tc.run,
							Settled:  func(context.Context) error { return tc.settled(made) },
							Snapshot: func(context.Context) (map[string]string, error) { return nil, nil },
							Teardown: func() { removed++ },
						}
					},
					Pick:          tc.pick,
					RestartWrites: !tc.strict,
					Timeout:       10 * time.Second,
				}
				heard := listen(t, func(t testing.TB) { CrashAtEveryWrite(t, s) })
				time.Sleep(2 * time.Hour) // until the last process has ended
				if tc.complaints == "" && heard != "" || !strings.Contains(heard, tc.complaints) {
					t.Errorf("heard %q, want %q", heard, tc.complaints)
				}
				if made != tc.worlds || removed != tc.worlds {
					t.Errorf("%d worlds made and %d removed, want %d", made, removed, tc.worlds)
				}
			})
		})
	}
}

// A process writes from several goroutines, and Settled is called before each write: never by two of them at once. The clock is
// that of the bubble.
func TestSettledIsAskedOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, twice atomic.Bool
		run := func(ctx context.Context, cfg *rest.Config) error {
			clients, err := kubernetes.NewForConfig(cfg)
			if err != nil {
				return err
			}
			var writers sync.WaitGroup
			for range 4 {
				writers.Go(func() {
					if _, err := clients.CoreV1().ConfigMaps("shop").Update(ctx, cart(), metav1.UpdateOptions{}); err != nil {
						t.Error(err)
					}
				})
			}
			writers.Wait()
			return nil
		}
		DisturbWrites(t, Scenario{
			Config: &rest.Config{Host: "http://memory", Transport: &server{}, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
			Setup: func(testing.TB) World {
				return World{
					Run: run,
					Settled: func(context.Context) error {
						if !asked.CompareAndSwap(false, true) {
							twice.Store(true)
						}
						time.Sleep(time.Millisecond)
						asked.Store(false)
						return nil
					},
					Snapshot: func(context.Context) (map[string]string, error) { return nil, nil },
				}
			},
			RestartWrites: true,
		}, func(int, Log) []Action { return nil })
		if twice.Load() {
			t.Error("Settled was called by two goroutines at once")
		}
	})
}

// RoundTrip answers without a network.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	s.serve(recorder, req)
	return recorder.Result(), nil
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

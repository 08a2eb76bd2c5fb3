// Package faults_test disturbs controllers that work on a cluster.
package faults_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	// Processes that are cut off complain a lot.
	klog.SetLogger(logr.Discard())
	cluster.Parallel(6)
	os.Exit(cluster.Run(m, cluster.Options{Profile: "hub", KeepNamespaces: true}))
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
		"writes although there is nothing to do": {
			restaurant: restaurant{version: waiter.notesTooEarly, dishes: 1, ignoresNotes: true, undisturbed: true},
			complaints: []string{"started again with nothing left to do, the process wrote:\n  1  patch configmaps"},
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
			heard := listen(t, func(t testing.TB) { faults.CrashAtEveryWrite(t, tc.restaurant.scenario(t, c)) })
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

func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	r := restaurant{version: waiter.resumable, dishes: 2}
	refusals := []faults.Action{faults.Conflict(), faults.TooManyRequests(0), faults.InternalError()}
	faults.DisturbWrites(t, r.scenario(t, cluster.Shared(t)), func(k int, _ faults.Log) []faults.Action {
		return refusals[k%len(refusals):][:1]
	})
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

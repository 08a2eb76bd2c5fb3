package usage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRefusals(t *testing.T) {
	refused := func(resource string) error {
		return fmt.Errorf("failed to list: %w", apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no")))
	}
	pods, gone := refused("pods"), errors.New("dial tcp: connection refused")
	type heard struct {
		at  int   // in seconds
		err error // nil is an event
	}
	cases := map[string]struct {
		heard    []heard
		at       int
		want     []string
		reported int
	}{
		"nothing":                             {nil, 0, nil, 0},
		"once":                                {[]heard{{0, pods}}, 30, nil, 0},
		"for a moment":                        {[]heard{{0, pods}, {4, pods}}, 30, nil, 0},
		"for long":                            {[]heard{{0, pods}, {4, pods}, {12, pods}, {70, pods}}, 80, []string{"pods"}, 1},
		"until something was heard":           {[]heard{{0, pods}, {12, pods}, {14, nil}}, 15, nil, 1},
		"until some time ago":                 {[]heard{{0, pods}, {12, pods}}, 102, nil, 1},
		"again after a long time":             {[]heard{{0, pods}, {12, pods}, {200, pods}}, 201, nil, 1},
		"again and for long":                  {[]heard{{0, pods}, {12, pods}, {200, pods}, {215, pods}}, 220, []string{"pods"}, 2},
		"several":                             {[]heard{{0, pods}, {0, refused("namespaces")}, {12, pods}, {12, refused("namespaces")}}, 13, []string{"namespaces", "pods"}, 2},
		"what has nothing to do with it":      {[]heard{{0, refused("services")}, {60, refused("services")}}, 61, nil, 0},
		"nobody answers, which harms nothing": {[]heard{{0, gone}, {60, gone}}, 61, nil, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
			refusals, now := NewWatchErrors(), start
			refusals.now = func() time.Time { return now }
			tracker := newTracker()
			tracker.SetWatchErrors(refusals)
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			reported := 0
			everyone := func(context.Context) []reconcile.Request {
				reported++
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "r1"}}}
			}
			if err := tracker.WatchErrorSource(everyone).Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			for _, h := range c.heard {
				now = start.Add(time.Duration(h.at) * time.Second)
				if h.err == nil {
					tracker.handlers()[kindPod].OnAdd(makePod("shop", "cart", "", "r1"), false)
				} else {
					refusals.record(h.err)
				}
			}
			now = start.Add(time.Duration(c.at) * time.Second)
			if diff := cmp.Diff(c.want, tracker.Revision("r1").Forbidden); diff != "" {
				t.Error(diff)
			}
			if reported != c.reported || queue.Len() > 0 != (reported > 0) {
				t.Errorf("told %d times, want %d; %d requests wait", reported, c.reported, queue.Len())
			}
		})
	}
}

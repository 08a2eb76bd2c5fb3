package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// An informer must not miss anything, however its watch is disturbed.
func TestInformerSurvives(t *testing.T) {
	t.Parallel()
	const json, protobuf = "application/json", "application/vnd.kubernetes.protobuf"
	tests := map[string]struct {
		contentType string
		rules       []faults.Rule
		watches     int32 // that the informer needs at least
	}{
		"nothing": {
			contentType: json, watches: 1,
		},
		"a watch that is dropped in every phase": {
			contentType: json, watches: 4,
			rules: []faults.Rule{
				{Match: faults.Watch, Nth: 1, Action: faults.DropWatch(1)},
				{Match: faults.Watch, Nth: 2, Action: faults.DropWatch(1)},
				{Match: faults.Watch, Nth: 3, Action: faults.DropWatch(2)},
			},
		},
		"the same in protobuf": {
			contentType: protobuf, watches: 4,
			rules: []faults.Rule{
				{Match: faults.Watch, Nth: 1, Action: faults.DropWatch(1)},
				{Match: faults.Watch, Nth: 2, Action: faults.DropWatch(1)},
				{Match: faults.Watch, Nth: 3, Action: faults.DropWatch(2)},
			},
		},
		"a watch that does not last": {
			contentType: json, watches: 3,
			rules: []faults.Rule{
				{Match: faults.Watch, Nth: 1, Action: faults.DropWatchAfter(20 * time.Millisecond)},
				{Match: faults.Watch, Nth: 2, Action: faults.DropWatchAfter(20 * time.Millisecond)},
			},
		},
		"a watch that cannot be resumed": {
			contentType: json, watches: 3,
			rules: []faults.Rule{
				{Match: faults.Watch, Nth: 1, Action: faults.DropWatch(2)},
				{Match: faults.Watch, Nth: 2, Action: faults.Expired()},
			},
		},
		"a watch that is refused": {
			contentType: json, watches: 3,
			rules: []faults.Rule{
				{Match: faults.Watch, Nth: 1, Action: faults.TooManyRequests(time.Second)},
				{Match: faults.Watch, Nth: 2, Action: faults.InternalError()},
			},
		},
	}
	c := cluster.Shared(t)
	admin, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := c.Namespace(t)
			var watches atomic.Int32
			count := faults.Rule{Match: func(r faults.Request) bool {
				if faults.Watch(r) {
					watches.Add(1)
				}
				return false
			}}
			in := faults.New(append(tc.rules, count)...)
			cfg := rest.CopyConfig(c.Config())
			cfg.ContentType = tc.contentType
			clients, err := kubernetes.NewForConfig(in.Config(cfg))
			if err != nil {
				t.Fatal(err)
			}
			factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
			lister := factory.Core().V1().Secrets().Lister()
			factory.Core().V1().Secrets().Informer()
			ctx, stop := context.WithCancel(t.Context())
			factory.Start(ctx.Done())
			t.Cleanup(func() { stop(); factory.Shutdown() })

			create := func(name string) {
				dish := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
				if _, err := admin.CoreV1().Secrets(namespace).Create(t.Context(), dish, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				wait.Until(t, func(context.Context) error {
					_, err := lister.Secrets(namespace).Get(name)
					return err
				})
			}
			create("soup")
			stirs := 0
			wait.Until(t, func(ctx context.Context) error {
				n := watches.Load()
				if n >= tc.watches {
					return nil
				}
				// A watch that is dropped after an event needs one. Without this, it would have a bookmark in a minute.
				stirs++
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"stirs":"%d"}}}`, stirs)
				_, err := admin.CoreV1().Secrets(namespace).Patch(ctx, "soup", types.MergePatchType, patch, metav1.PatchOptions{})
				return errors.Join(err, fmt.Errorf("the informer has opened %d watches, want %d", n, tc.watches))
			})
			create("cake")
		})
	}
}

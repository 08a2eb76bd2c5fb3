package faults_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// waiter is a made-up controller: a ConfigMap "order" wants dishes, which are
// Secrets, and then to be marked as served. Each of its methods is a version of
// it that gets one thing wrong, or nothing.
type waiter struct {
	client.Client
	namespace string
}

type version func(waiter, context.Context, *corev1.ConfigMap) (ctrl.Result, error)

const servedAnnotation = "faults.test/served"

func (w waiter) resumable(ctx context.Context, order *corev1.ConfigMap) (ctrl.Result, error) {
	for _, dish := range []string{"soup", "cake"} {
		err := w.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: dish}, &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			err = w.bring(ctx, dish)
		}
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, w.served(ctx, order)
}

func (w waiter) countsBeforeNoting(ctx context.Context, order *corev1.ConfigMap) (ctrl.Result, error) {
	dish := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "dish"}}
	err := w.Get(ctx, client.ObjectKeyFromObject(dish), dish)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	count, _ := strconv.Atoi(string(dish.Data["count"]))
	dish.Data = map[string][]byte{"count": []byte(strconv.Itoa(count + 1))}
	if err != nil {
		err = w.Create(ctx, dish)
	} else {
		err = w.Update(ctx, dish)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, w.served(ctx, order)
}

func (w waiter) forgetsNames(ctx context.Context, order *corev1.ConfigMap) (ctrl.Result, error) {
	dish := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "dish-"}}
	if err := w.Create(ctx, dish); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, w.served(ctx, order)
}

func (w waiter) notesTooEarly(ctx context.Context, order *corev1.ConfigMap) (ctrl.Result, error) {
	if err := w.served(ctx, order); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, w.bring(ctx, "soup")
}

func (w waiter) bring(ctx context.Context, dish string) error {
	secret := corev1ac.Secret(dish, w.namespace).WithStringData(map[string]string{"taste": "good"})
	return w.Apply(ctx, secret, client.FieldOwner("waiter"), client.ForceOwnership)
}

func (w waiter) served(ctx context.Context, order *corev1.ConfigMap) error {
	mark := corev1ac.ConfigMap(order.Name, w.namespace).WithAnnotations(map[string]string{servedAnnotation: "true"})
	return w.Apply(ctx, mark, client.FieldOwner("waiter"), client.ForceOwnership)
}

// run works as a real controller does, with a manager and a cache, and tells when it has looked at the order.
func (v version) run(ctx context.Context, cfg *rest.Config, namespace string, heedsNote bool, looked func()) error {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Metrics:    metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	isOrder := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == "order" })
	err = ctrl.NewControllerManagedBy(mgr).
		Named("waiter").
		For(&corev1.ConfigMap{}, builder.WithPredicates(isOrder)).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
			order := &corev1.ConfigMap{}
			if err := mgr.GetClient().Get(ctx, req.NamespacedName, order); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if !heedsNote || order.Annotations[servedAnnotation] == "" {
				result, err = v(waiter{mgr.GetClient(), namespace}, ctx, order)
			}
			if err == nil {
				looked()
			}
			return result, err
		}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// restaurant is where a version of the waiter is watched.
type restaurant struct {
	version      version
	dishes       int  // that make the end state
	ignoresNotes bool // serves again what has been served
	mostDishes   int  // as the invariant allows; 0 is any number
	undisturbed  bool // what there is to see, a run without any crash shows
}

func (r restaurant) scenario(t testing.TB, c *cluster.Cluster) faults.Scenario {
	t.Helper()
	admin, err := client.New(c.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	setup := func(t testing.TB) faults.World {
		namespace := c.Namespace(t)
		order := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "order", Labels: map[string]string{"of": "test"}}}
		if err := admin.Create(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		dishes := func(ctx context.Context) (int, error) {
			var list corev1.SecretList
			err := admin.List(ctx, &list, client.InNamespace(namespace))
			return len(list.Items), err
		}
		var looked atomic.Bool
		return faults.World{
			Run: func(ctx context.Context, cfg *rest.Config) error {
				looked.Store(false)
				return r.version.run(ctx, cfg, namespace, !r.ignoresNotes, func() { looked.Store(true) })
			},
			Settled: func(ctx context.Context) error {
				// One that is started again and has not looked may have something left to do.
				if !looked.Load() {
					return errors.New("the waiter has not looked at the order")
				}
				if err := admin.Get(ctx, client.ObjectKeyFromObject(order), order); err != nil {
					return err
				}
				if order.Annotations[servedAnnotation] == "" {
					return fmt.Errorf("order is not served")
				}
				if n, err := dishes(ctx); err != nil || n < r.dishes {
					return fmt.Errorf("%d of %d dishes are there (%v)", n, r.dishes, err)
				}
				return nil
			},
			Snapshot: func(ctx context.Context) (map[string]string, error) {
				secrets := faults.Dump{
					Kinds: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret")},
					In:    []client.ListOption{client.InNamespace(namespace)},
					Names: map[string]string{namespace: "NS"},
				}
				return secrets.Snapshot(ctx, admin)
			},
			Invariant: func(ctx context.Context) error {
				if n, err := dishes(ctx); r.mostDishes > 0 && (err != nil || n > r.mostDishes) {
					return fmt.Errorf("%d dishes on one table (%v)", n, err)
				}
				return nil
			},
		}
	}
	scenario := faults.Scenario{Config: c.Config(), Setup: setup}
	if r.undisturbed {
		scenario.Pick = func(int, faults.Log) bool { return false }
	}
	return scenario
}

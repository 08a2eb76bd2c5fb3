package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/meshservice/generate"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestCrashOnKubernetes kills the generate controllers at the writes that make a mesh of two Services and their pods.
func TestCrashOnKubernetes(t *testing.T) {
	faults.DisturbEveryWrite(t, faults.Scenario{
		Config: shared(t).Config(), Pick: faults.Sample(8, faults.To("configmaps")),
		Setup: func(t testing.TB) faults.World {
			w := prepare(t, desired.Kubernetes, kumav1alpha1.ModeEverywhere)
			set := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cart"},
				Spec: appsv1.StatefulSetSpec{
					Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}}, Template: template("cart"),
				},
			}
			headless := w.kubeService("each")
			headless.Spec.ClusterIP, headless.Spec.Selector = corev1.ClusterIPNone, map[string]string{"app": "cart"}
			w.create(t, set, w.kubeService("cart"), headless)
			wait.Until(t, func(ctx context.Context) error {
				if err := w.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil || set.Status.ReadyReplicas != 2 {
					return fmt.Errorf("it is %+v, %v", set.Status, err)
				}
				return nil
			})
			return w.outcome(t, func(ctx context.Context) error {
				return w.settled(ctx, w.namespace, map[string]kumav1alpha1.DataplaneProxies{
					"cart": {Total: 2, Healthy: 2}, "each-cart-0-817bccf4": {Total: 1, Healthy: 1}, "each-cart-1-c9dcca93": {Total: 1, Healthy: 1},
				}, "cart_"+w.namespace+"_svc_80", "each_"+w.namespace+"_svc_80")
			})
		},
	}, faults.Kills()...)
}

// TestCrashInUniversal kills the generate controllers at the writes that make one service, and take away another after its grace.
func TestCrashInUniversal(t *testing.T) {
	faults.DisturbEveryWrite(t, faults.Scenario{
		Config: shared(t).Config(), Pick: faults.Sample(8, faults.To("configmaps")),
		Setup: func(t testing.TB) faults.World {
			w := prepare(t, desired.Universal, kumav1alpha1.ModeEverywhere, func(o *generate.Options) { o.Grace = time.Second })
			old := desired.UniversalService("old", "old", w.mesh, []kumav1alpha1.Port{{Port: 80}}, w.options.ZoneInfo)
			desired.RecordLabels(old)
			w.create(t, old, w.dataplane("backend-1", "backend", 8080), w.dataplane("backend-2", "backend", 9090))
			return w.outcome(t, func(ctx context.Context) error {
				return w.settled(ctx, w.options.SystemNamespace, map[string]kumav1alpha1.DataplaneProxies{"backend": {Total: 2, Healthy: 2}}, "backend")
			})
		},
	}, faults.Kills()...)
}

// outcome is one telling of a story that ends when it has settled.
func (w *world) outcome(t testing.TB, settled func(context.Context) error) faults.World {
	return faults.World{
		Run:     func(ctx context.Context, config *rest.Config) error { return run(ctx, config, w.options) },
		Settled: settled, Invariant: w.addressesStay(),
		Snapshot: func(ctx context.Context) (map[string]string, error) {
			kind := func(name string) schema.GroupVersionKind { return kumav1alpha1.GroupVersion.WithKind(name) }
			names := map[string]string{w.mesh: "<mesh>", w.namespace: "<namespace>", w.options.SystemNamespace: "<system>"}
			all := map[string]string{}
			for _, namespace := range []string{w.namespace, w.options.SystemNamespace} {
				dump := faults.Dump{
					Kinds: []schema.GroupVersionKind{kind("MeshService"), kind("Dataplane")},
					In:    []client.ListOption{client.InNamespace(namespace)}, Names: names, Scrub: scrub,
				}
				objects, err := dump.Snapshot(ctx, w)
				if err != nil {
					return nil, err
				}
				maps.Copy(all, objects)
			}
			records, err := faults.Dump{
				Kinds: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")},
				In:    []client.ListOption{client.InNamespace(w.options.SystemNamespace), client.HasLabels{kumav1alpha1.LabelMesh}}, Names: names, Scrub: scrub,
			}.Snapshot(ctx, w)
			maps.Copy(all, records)
			return all, err
		},
		Teardown: func() { w.forget(t) },
	}
}

// addressesStay looks whether anybody's address has changed, or belongs to another too.
func (w *world) addressesStay() func(context.Context) error {
	had := map[string]string{}
	check := func(owners map[string]string, who, address string) error {
		if before := had[who]; before != "" && before != address {
			return fmt.Errorf("%s had %s and has %s", who, before, address)
		}
		if other := owners[address]; other != "" {
			return fmt.Errorf("%s and %s both have %s", who, other, address)
		}
		had[who], owners[address] = address, who
		return nil
	}
	return func(ctx context.Context) error {
		var services kumav1alpha1.MeshServiceList
		var record corev1.ConfigMap
		key := client.ObjectKey{Namespace: w.options.SystemNamespace, Name: desired.VIPConfigMap(w.mesh)}
		if err := errors.Join(w.List(ctx, &services), client.IgnoreNotFound(w.Get(ctx, key, &record))); err != nil {
			return nil // nothing was seen that is wrong
		}
		var errs []error
		owners, tags := map[string]string{}, map[string]string{}
		for i := range services.Items {
			for _, vip := range services.Items[i].Status.VIPs {
				errs = append(errs, check(owners, "MeshService "+string(services.Items[i].UID), vip.IP))
			}
		}
		for service, address := range record.Data {
			errs = append(errs, check(tags, "kuma.io/service "+service, address))
		}
		return errors.Join(errs...)
	}
}

// settled looks whether there are exactly these MeshServices, these values of kuma.io/service have addresses and no others, and the
// mesh says that it is well.
func (w *world) settled(ctx context.Context, namespace string, want map[string]kumav1alpha1.DataplaneProxies, tags ...string) error {
	var list kumav1alpha1.MeshServiceList
	if err := w.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		s := &list.Items[i]
		if proxies, found := want[s.Name]; !found || s.Status.DataplaneProxies != proxies || len(s.Status.VIPs) != 1 {
			return fmt.Errorf("MeshService %s has status %+v", s.Name, s.Status)
		}
	}
	var record corev1.ConfigMap
	if err := w.Get(ctx, client.ObjectKey{Namespace: w.options.SystemNamespace, Name: desired.VIPConfigMap(w.mesh)}, &record); err != nil {
		return err
	}
	if has := slices.Sorted(maps.Keys(record.Data)); !slices.Equal(has, tags) {
		return fmt.Errorf("there are addresses of %q, want those of %q", has, tags)
	}
	var mesh kumav1alpha1.Mesh
	if err := w.Get(ctx, client.ObjectKey{Name: w.mesh}, &mesh); err != nil {
		return err
	}
	if len(list.Items) != len(want) || mesh.Status.MeshServices == nil || int(mesh.Status.MeshServices.Total) != len(want) {
		return fmt.Errorf("there are %d MeshServices, and the mesh says %+v", len(list.Items), mesh.Status)
	}
	return errors.Join(
		harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionVIPs, "", kumav1alpha1.ReasonAllocated),
		harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionGenerated, "", kumav1alpha1.ReasonGenerated),
	)
}

// scrub removes what differs by nature: the addresses that Kubernetes gives, and those that depend on names.
func scrub(object *unstructured.Unstructured) {
	for _, path := range [][]string{
		{"metadata", "managedFields"}, {"metadata", "generation"}, {"status", "observedGeneration"}, {"spec", "networking", "address"}, {"status", "vips"},
		{"status", "columns", "vips"}, {"status", "conditions"},
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	if data, found, _ := unstructured.NestedStringMap(object.Object, "data"); found {
		for key := range data {
			data[key] = "an address"
		}
		_ = unstructured.SetNestedStringMap(object.Object, data, "data")
	}
}

package generate

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// vipService is a MeshService with a VIP, or one that waits for the reason.
func vipService(namespace, name, vip, reason string) *kumav1alpha1.MeshService {
	s := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}}
	if vip != "" {
		setVIPs(s, vip)
	} else {
		setCondition(s, kumav1alpha1.ConditionVIPs, metav1.ConditionFalse, reason, "it waits")
	}
	return s
}

// vipReconciler reads the objects, and counts what is read of them.
func vipReconciler(t *testing.T, share int, objects ...client.Object) (r *reconciler, read *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kumav1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r = &reconciler{Options: Options{
		ZoneInfo: desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}, Ranges: desired.Ranges{}.OrDefaults(), NamespaceVIPs: share,
	}}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, kind := range []client.Object{&kumav1alpha1.MeshService{}, &kumav1alpha1.MeshMultiZoneService{}} {
		b = b.WithIndex(kind, byMesh, func(object client.Object) []string { return []string{desired.MeshOf(object)} })
		for index, of := range r.addressIndexes() {
			b = b.WithIndex(kind, index, of)
		}
	}
	read = new(int)
	r.client = interceptor.NewClient(b.Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			*read += meta.LenList(list)
			return err
		},
	})
	r.cache = r.client
	return r, read
}

// Services over the share of a namespace cost each of them no more than the share.
func TestShareIsCountedByIndex(t *testing.T) {
	objects := []client.Object{vipService("bank", "a", "241.0.0.1", ""), vipService("bank", "b", "241.0.0.2", ""), vipService("bank", "foreign", "192.0.2.1", "")}
	for i := range 200 {
		objects = append(objects, vipService("bank", fmt.Sprintf("over-%d", i), "", kumav1alpha1.ReasonShareExhausted))
	}
	r, read := vipReconciler(t, 2, objects...)
	for name, want := range map[string]bool{"over-0": true, "a": false} {
		*read = 0
		object := vipService("bank", name, "", kumav1alpha1.ReasonShareExhausted)
		if full, err := r.hasShare(t.Context(), object); err != nil || full != want {
			t.Errorf("%s: the share is used up: %t, %v", name, full, err)
		}
		if *read > 10 {
			t.Errorf("%s: %d services are read", name, *read)
		}
	}
}

// As many waiting services are tried as addresses are free, and only those that can get one. One that waits no longer lets the
// next one try.
func TestWaitingServicesAreEnqueued(t *testing.T) {
	var objects []client.Object
	for i := range 200 {
		objects = append(objects,
			vipService("bank", fmt.Sprintf("over-%d", i), "", kumav1alpha1.ReasonShareExhausted),
			vipService("shop", fmt.Sprintf("over-%d", i), "", kumav1alpha1.ReasonShareExhausted),
			vipService("farm", fmt.Sprintf("none-%d", i), "", kumav1alpha1.ReasonRangeExhausted))
	}
	leaving := vipService("farm", "leaving", "", kumav1alpha1.ReasonRangeExhausted)
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{}, []string{"example.org/stays"}
	collides := vipService("hill", "collides", "241.0.0.9", "")
	setCondition(collides, kumav1alpha1.ConditionAddressed, metav1.ConditionFalse, kumav1alpha1.ReasonHostnameCollision, "it waits")
	named := vipService("hill", "named", "241.0.0.8", "")
	named.Status.Addresses = []kumav1alpha1.Address{{Hostname: "named.mesh"}}
	r, _ := vipReconciler(t, 2, append(objects, collides)...)
	two := vipService("shop", "two", "241.0.0.1", "")
	two.Status.VIPs = append(two.Status.VIPs, kumav1alpha1.VIP{IP: "241.0.0.2"})
	for name, c := range map[string]struct {
		before, after *kumav1alpha1.MeshService
		want          map[string]int
	}{
		"one is deleted":                {vipService("bank", "x", "241.0.0.1", ""), nil, map[string]int{"bank": 1, "farm": 1}},
		"two addresses":                 {two, nil, map[string]int{"shop": 2, "farm": 2}},
		"one of them":                   {two, vipService("shop", "two", "241.0.0.1", ""), map[string]int{"shop": 1, "farm": 1}},
		"one that waits gets its own":   {vipService("bank", "over-0", "", kumav1alpha1.ReasonShareExhausted), vipService("bank", "over-0", "241.0.0.1", ""), map[string]int{"bank": 1}},
		"one that waits is deleted":     {vipService("farm", "none-0", "", kumav1alpha1.ReasonRangeExhausted), nil, map[string]int{"farm": 1}},
		"one that waits is terminating": {vipService("farm", "leaving", "", kumav1alpha1.ReasonRangeExhausted), leaving, map[string]int{"farm": 1}},
		"it now waits for the share":    {vipService("farm", "none-0", "", kumav1alpha1.ReasonRangeExhausted), vipService("farm", "none-0", "", kumav1alpha1.ReasonShareExhausted), map[string]int{"farm": 1}},
		"it goes on waiting":            {vipService("farm", "none-0", "", kumav1alpha1.ReasonRangeExhausted), vipService("farm", "none-0", "", kumav1alpha1.ReasonRangeExhausted), map[string]int{}},
		"a hostname":                    {named, vipService("hill", "named", "241.0.0.8", ""), map[string]int{"hill": 1}},
		"nothing":                       {vipService("bank", "x", "241.0.0.1", ""), vipService("bank", "x", "241.0.0.1", ""), map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			var after client.Object
			if c.after != nil {
				after = c.after
			}
			r.enqueueWaiting(t.Context(), c.before, after, q)
			got := map[string]int{}
			for q.Len() > 0 {
				request, _ := q.Get()
				got[request.Namespace]++
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%v are tried, want %v", got, c.want)
			}
		})
	}
}

// A service whose status is refused leaves the address to another one that waits.
func TestRefusedStatusLeavesTheAddress(t *testing.T) {
	waiting := func(name string) *kumav1alpha1.MeshMultiZoneService {
		s := &kumav1alpha1.MeshMultiZoneService{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: name, UID: types.UID(name)}}
		setCondition(s, kumav1alpha1.ConditionVIPs, metav1.ConditionFalse, kumav1alpha1.ReasonRangeExhausted, "it waits")
		return s
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"refused":    {apierrors.NewRequestEntityTooLargeError("the status"), "bank/next"},
		"a conflict": {apierrors.NewConflict(schema.GroupResource{Resource: "meshmultizoneservices"}, "refused", errors.New("changed")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			refused, next := waiting("refused"), waiting("next")
			r, _ := vipReconciler(t, 0, refused, next, vipService("bank", "has-one", "241.0.0.1", ""))
			r.Environment = desired.Universal
			r.refused = kube.NewEnqueuer()
			r.client = interceptor.NewClient(r.client.(client.WithWatch), interceptor.Funcs{
				SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
					return c.err
				},
			})
			if _, err := r.reconcileStatuses(t.Context(), request(refused)); !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			q := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](0, 0))
			defer q.ShutDown()
			select {
			case e := <-r.refused:
				r.enqueueNext(t.Context(), e, q)
			default:
			}
			got := ""
			if q.Len() > 0 {
				enqueued, _ := q.Get()
				got = enqueued.String()
			}
			if got != c.want {
				t.Errorf("%q is tried, want %q", got, c.want)
			}
		})
	}
}

package template

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// A kind that cannot be watched is reported with what to do, and is tried again.
func TestWatchKind(t *testing.T) {
	for name, c := range map[string]struct {
		missing bool
		err     error
		want    string
	}{
		"readable":      {},
		"not installed": {true, nil, "the hub has no kind Deployment in apps/v1: install its CRD on the hub, or write the kind as the hub does"},
		"forbidden": {
			false, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "", errors.New("no")),
			`the operator may not read Deployment on the hub: grant get, list and watch on resource deployments of group "apps" in rbac.extraRules of the chart`,
		},
		"unavailable": {false, apierrors.NewServiceUnavailable("starting"), "list Deployment on the hub: starting"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			kinds := h.reconciler.Kinds
			mapper := kinds.mapper
			if c.missing {
				kinds.mapper = installed(configMaps)
			}
			h.fail("list Deployment", c.err)
			err := kinds.watchKind(t.Context(), cartKey.Kind)
			if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("got %v", err)
			}
			if version := h.reconciler.Version(t.Context(), cartKey); (version == "") != (c.want != "") {
				t.Errorf("resourceVersion %q", version)
			}
			h.OnList, kinds.mapper = nil, mapper
			h.clock.SetTime(h.clock.Now().Add(missInterval + time.Second))
			if err := kinds.watchKind(t.Context(), cartKey.Kind); err != nil || !slices.Equal(h.watched, []string{"Deployment"}) {
				t.Errorf("the next time: %v, watched %v", err, h.watched)
			}
		})
	}
}

// A kind is watched once, however many policies select it at the same time; and of several kinds, the first that fails is reported.
func TestErrorFor(t *testing.T) {
	h := newHub(t)
	selecting := func(kinds ...string) *policy.Policy {
		p := &policy.Policy{Namespace: "shop", Name: "p"}
		for _, kind := range kinds {
			version, kind, _ := strings.Cut(kind, " ")
			p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: version, Kind: kind})
		}
		return p
	}
	var policies sync.WaitGroup
	for range 8 {
		policies.Go(func() {
			if err := h.reconciler.Kinds.ErrorFor(t.Context(), selecting("apps/v1 Deployment", "apps/v1 Deployment")); err != nil {
				t.Error(err)
			}
		})
	}
	policies.Wait()
	if !slices.Equal(h.watched, []string{"Deployment"}) {
		t.Errorf("watched: %v", h.watched)
	}
	err := h.reconciler.Kinds.ErrorFor(t.Context(), selecting("v1 ConfigMap", "v1 Service", "v1 Secret"))
	if err == nil || !strings.HasPrefix(err.Error(), "the hub has no kind Service in v1") || !slices.Equal(h.watched, []string{"Deployment", "ConfigMap"}) {
		t.Errorf("%v, watched: %v", err, h.watched)
	}
}

// A policy enqueues what it has taken, whether it still selects that or not, and what it selects, once that is known.
func TestTemplatesOf(t *testing.T) {
	claimed := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "former-service"})
	claimed.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "former"}
	model.Claim(claimed, model.PolicyKey{Namespace: "shop", Name: "p"})
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for name, c := range map[string]struct {
		unsynced bool
		request  string
		want     string
	}{
		"all is known":                     {false, "", "Service former, Deployment it"},
		"the kind has yet to be received":  {true, "", "Service former"},
		"the kind may not be read":         {false, "list Deployment", "Service former"},
		"what it has taken cannot be read": {false, "list ResourceBinding", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			elsewhere := adoptiontest.Object(t, cart)
			elsewhere.SetNamespace("pay")
			h.put(t, claimed.Copy().Object)
			h.put(t, elsewhere)
			h.cache.unsynced = c.unsynced
			h.fail(c.request, forbidden)
			var names []string
			for _, key := range h.reconciler.allTemplates(t.Context(), nil) {
				names = append(names, key.Kind.Kind+" "+key.Name)
			}
			if got := strings.Join(names, ", "); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// The room of clusters concerns only the templates with replicas that wait for it.
func TestWaitingTemplates(t *testing.T) {
	h := newHub(t)
	for name, placing := range map[string]model.Placing{"placed": {}, "short": {NoRoom: 2}, "unknown": {NotReported: []string{"west"}}} {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: name})
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
		model.SetPlaced(b, placing)
		h.put(t, b.Object)
	}
	var names []string
	for _, key := range h.reconciler.waitingTemplates(t.Context(), nil) {
		names = append(names, key.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"short", "unknown"}) {
		t.Errorf("got %v", names)
	}
}

func TestTemplateChanged(t *testing.T) {
	object := func(generation int64, changes ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "it", UID: "u", Generation: generation, Labels: map[string]string{"app": "cart"}}}
		for _, change := range changes {
			change(o)
		}
		return o
	}
	for name, c := range map[string]struct {
		before, now *metav1.PartialObjectMetadata
		want        bool
	}{
		"the status":                       {object(1), object(1, func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "2" }), false},
		"the spec":                         {object(1), object(2), true},
		"anything, of a kind without spec": {object(0), object(0), true},
		"a label":                          {object(1), object(1, func(o *metav1.PartialObjectMetadata) { o.Labels = map[string]string{"app": "pay"} }), true},
		"an annotation":                    {object(1), object(1, func(o *metav1.PartialObjectMetadata) { o.Annotations = map[string]string{"a": "b"} }), true},
		"deleted and created again":        {object(1), object(1, func(o *metav1.PartialObjectMetadata) { o.UID = "v" }), true},
		"being deleted":                    {object(1), object(1, func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = deleted }), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := templateChanged.Update(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{ObjectOld: c.before, ObjectNew: c.now}); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestPlacementChanged(t *testing.T) {
	cluster := func(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west", Labels: map[string]string{"region": "eu"}}}
		change(c)
		return c
	}
	for name, c := range map[string]struct {
		change func(*clusterv1alpha1.Cluster)
		want   bool
	}{
		"the status":  {func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v2" }, false},
		"the address": {func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint, c.Generation = "https://x", 2 }, false},
		"a label":     {func(c *clusterv1alpha1.Cluster) { c.Labels["region"] = "us" }, true},
		"it leaves":   {func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = deleted }, true},
		"its room":    {func(c *clusterv1alpha1.Cluster) { c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{} }, false},
		"it is reached": {func(c *clusterv1alpha1.Cluster) {
			c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := event.UpdateEvent{ObjectOld: cluster(func(*clusterv1alpha1.Cluster) {}), ObjectNew: cluster(c.change)}
			if got := placementChanged.Update(changed); got != c.want {
				t.Errorf("got %t", got)
			}
			if got, want := roomChanged.Update(changed), strings.HasPrefix(name, "its room") || name == "it is reached"; got != want {
				t.Errorf("room: got %t", got)
			}
		})
	}
}

// A binding enqueues its template when another client changes or deletes it, and when the operator starts; not for writes of the
// operator itself.
func TestBindingEvents(t *testing.T) {
	binding := func(generation int64, deletion *metav1.Time) client.Object {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "it-deployment"})
		b.SetGeneration(generation)
		b.SetDeletionTimestamp(deletion)
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "it"}
		return b.Object
	}
	h := newHub(t)
	h.reconcile(t)
	events := h.reconciler.bindingEvents()
	type queue = workqueue.TypedRateLimitingInterface[model.TemplateKey]
	created := func(initial bool) func(q queue) {
		return func(q queue) {
			events.Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: binding(1, nil), IsInInitialList: initial}, q)
		}
	}
	updated := func(now client.Object) func(q queue) {
		return func(q queue) {
			events.Update(t.Context(), event.TypedUpdateEvent[client.Object]{ObjectOld: binding(1, nil), ObjectNew: now}, q)
		}
	}
	for name, c := range map[string]struct {
		happens func(q queue)
		want    []model.TemplateKey
	}{
		"there when the operator starts": {created(true), []model.TemplateKey{cartKey}},
		"created":                        {created(false), nil},
		"its spec changes":               {updated(binding(2, nil)), []model.TemplateKey{cartKey}},
		"its status changes":             {updated(binding(1, nil)), nil},
		"its deletion begins":            {updated(binding(2, deleted)), nil},
		"gone": {func(q queue) {
			events.Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: binding(2, deleted)}, q)
		}, []model.TemplateKey{cartKey}},
		// What required it brings it again, as a dependency.
		"gone, and another template requires it": {func(q queue) {
			events.Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: h.read(t, dependency).Object}, q)
		}, []model.TemplateKey{{Kind: configMaps, ObjectKey: cartKey.ObjectKey}, cartKey}},
	} {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[model.TemplateKey]())
			defer q.ShutDown()
			c.happens(q)
			var got []model.TemplateKey
			for q.Len() > 0 {
				key, _ := q.Get()
				got = append(got, key)
				q.Done(key)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

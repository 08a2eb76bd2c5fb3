package leftover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

const hubID = "h"

// labelled is a ConfigMap with the labels of a hub, as if they were meant for the one of another name.
func labelled(hub, name, meantFor string) *corev1.ConfigMap {
	labels := model.Identity{Hub: hub, Object: model.Digest("", "ConfigMap", "shop", meantFor)}.Labels()
	labels["app"] = "it"
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
}

// labelledClaim is a PersistentVolumeClaim with the labels of the hub. Its deletion deletes more than itself.
func labelledClaim(name string) *corev1.PersistentVolumeClaim {
	labels := model.Identity{Hub: hubID, Object: model.Digest("", "PersistentVolumeClaim", "shop", name)}.Labels()
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
}

// leftoversReported is the metric of the only cluster.
func leftoversReported(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "fairlead_adoption_leftovers" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no metric")
	return 0
}

func workOf(name string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: model.ExecutionNamespace("west"), Name: model.WorkName(model.Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}),
		Labels: map[string]string{model.LabelWork: model.Digest("", "ConfigMap", "shop", name)},
	}}
}

// indexed is a cache of the hub.
func indexed(t *testing.T, objects ...client.Object) *adoptiontest.API {
	return adoptiontest.NewAPI(t, func(b *fake.ClientBuilder) {
		for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
			b.WithIndex(kind, model.IndexTemplate, model.TemplateIndexValues)
		}
	}, objects...)
}

// A cluster has an object with a Work, one whose Work the cache does not have yet, one that is bound, one that is bound under a name of Karmada's, one of another hub, a copy,
// and three leftovers, of which one is protected from deletion.
func TestReconcile(t *testing.T) {
	for asked, c := range map[string]struct {
		writes []string
		event  string
		left   float64
	}{
		"": {nil, "3 objects have the labels of this hub in cluster west and no Work on the hub, the first: ConfigMap shop/left", 3},
		ReleaseLeftovers: {
			[]string{"patch ConfigMap left", "patch ConfigMap left-too", "patch PersistentVolumeClaim data"}, "", 0,
		},
		DeleteLeftovers: {
			[]string{"delete ConfigMap left", "delete ConfigMap left-too", "patch PersistentVolumeClaim data"}, "", 0,
		},
	} {
		t.Run("asked: "+asked, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west", Annotations: map[string]string{AnnotationLeftovers: asked}}}
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
			bound := bindingTo("west")
			bound.SetName("bound-configmap")
			bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "bound"}
			inherited := bound.Copy()
			inherited.SetName("of-another-name")
			inherited.Spec.Resource.Name = "inherited"
			cache := indexed(t, cluster, workOf("it"), inherited.Copy().Object)
			hub := adoptiontest.NewAPI(t, nil, workOf("it"), workOf("new"), bound.Object, inherited.Object)
			west := adoptiontest.NewAPI(t, nil, labelled(hubID, "it", "it"), labelled(hubID, "new", "new"), labelled(hubID, "bound", "bound"), labelled(hubID, "inherited", "inherited"),
				labelled("another", "other", "other"), labelled(hubID, "copy", "it-too"), labelled(hubID, "left", "left"), labelled(hubID, "left-too", "left-too"),
				labelledClaim("data"))
			recorder := events.NewFakeRecorder(5)
			r := &reconciler{
				client: cache, reader: hub, hub: hubID, recorder: recorder,
				clientOf: func(string) *member.Client { return &member.Client{Name: "west", API: west} },
				kindsOf: func(*member.Client) ([]schema.GroupVersionKind, error) {
					return []schema.GroupVersionKind{
						corev1.SchemeGroupVersion.WithKind("ConfigMap"), {Group: "example.com", Version: "v1", Kind: "Unknown"},
						corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
					}, nil
				},
			}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "west"}})
			if err != nil || result.RequeueAfter != searchInterval {
				t.Errorf("%v, %v", result, err)
			}
			if !slices.Equal(west.Writes, c.writes) || len(hub.Writes)+len(cache.Writes) > 0 {
				t.Errorf("written: %v, %v, %v", west.Writes, hub.Writes, cache.Writes)
			}
			if got := leftoversReported(t); got != c.left {
				t.Errorf("the metric is %v", got)
			}
			select {
			case got := <-recorder.Events:
				if c.event == "" || !strings.Contains(got, c.event) {
					t.Errorf("got event %q", got)
				}
			default:
				if c.event != "" {
					t.Error("no event")
				}
			}
			left := labelled(hubID, "left", "")
			if asked == ReleaseLeftovers && (!west.Exists(t, left) || len(left.Labels) != 1) {
				t.Errorf("labels %v", left.Labels)
			}
		})
	}
}

// A search gives up when the connection fails, and is repeated sooner when single kinds cannot be listed.
func TestReconcileWithErrors(t *testing.T) {
	for name, c := range map[string]struct {
		fails  error
		lists  int
		result time.Duration
	}{
		"the connection":  {errors.New("net/http: request canceled (Client.Timeout exceeded while awaiting headers)"), 1, 0},
		"an API of kinds": {apierrors.NewServiceUnavailable("no endpoints"), 2, retryInterval},
		"none":            {nil, 2, searchInterval},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
			west, lists := adoptiontest.NewAPI(t, nil), 0
			west.OnList = func(kind, _ string) error {
				if lists++; kind == "ConfigMap" {
					return c.fails
				}
				return nil
			}
			r := &reconciler{
				client: indexed(t, cluster), hub: hubID,
				clientOf: func(string) *member.Client { return &member.Client{Name: "west", API: west} },
				kindsOf: func(*member.Client) ([]schema.GroupVersionKind, error) {
					return []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Service")}, nil
				},
			}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "west"}})
			if lists != c.lists || result.RequeueAfter != c.result || (err != nil) != (c.result == 0) {
				t.Errorf("%d lists, %v, %v", lists, result, err)
			}
		})
	}
}

// endlessCluster lists objects with the labels of the hub, and more each time.
type endlessCluster struct {
	client.Client
	lists, perPage int
}

func (c *endlessCluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	page := list.(*metav1.PartialObjectMetadataList)
	page.Items, page.Continue = nil, "more"
	for i := range c.perPage {
		name := fmt.Sprintf("left-%d-%d", c.lists, i)
		page.Items = append(page.Items, metav1.PartialObjectMetadata{ObjectMeta: labelled(hubID, name, name).ObjectMeta})
	}
	c.lists++
	return nil
}

// A list without an end is not read for ever, and fills no memory.
func TestEndlessList(t *testing.T) {
	for perPage, want := range map[int]int{0: 0, 1: maxPages, pageSize: maxCandidates} {
		r := &reconciler{
			client: adoptiontest.NewAPI(t, nil), hub: hubID,
			kindsOf: func(*member.Client) ([]schema.GroupVersionKind, error) {
				return []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")}, nil
			},
		}
		west := &endlessCluster{perPage: perPage}
		got, err := r.findCandidates(t.Context(), &member.Client{Name: "west", API: west})
		if err != nil || len(got) != want || west.lists > maxPages {
			t.Errorf("%d objects a page: %d candidates of %d lists, want %d, %v", perPage, len(got), west.lists, want, err)
		}
	}
}

// A cluster that is not connected, or not ready, is searched when it is.
func TestReconcileLater(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	r := &reconciler{client: adoptiontest.NewAPI(t, nil, cluster), clientOf: func(string) *member.Client { return nil }}
	for _, name := range []string{"west", "gone"} {
		if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil || result.RequeueAfter > 0 {
			t.Errorf("%s: %v, %v", name, result, err)
		}
	}
}

// A cluster is searched when it becomes ready, and when its annotation changes, and not for each status that is written.
func TestSearchable(t *testing.T) {
	cluster := func(ready metav1.ConditionStatus, asked string) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
		if asked != "" {
			c.Annotations = map[string]string{AnnotationLeftovers: asked}
		}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: ready}}
		return c
	}
	for name, c := range map[string]struct {
		before, now *clusterv1alpha1.Cluster
		want        bool
	}{
		"ready again":             {cluster(metav1.ConditionFalse, ""), cluster(metav1.ConditionTrue, ""), true},
		"no longer ready":         {cluster(metav1.ConditionTrue, ""), cluster(metav1.ConditionFalse, ""), false},
		"as ready as before":      {cluster(metav1.ConditionTrue, ""), cluster(metav1.ConditionTrue, ""), false},
		"to be released":          {cluster(metav1.ConditionTrue, ""), cluster(metav1.ConditionTrue, ReleaseLeftovers), true},
		"no longer to be":         {cluster(metav1.ConditionTrue, DeleteLeftovers), cluster(metav1.ConditionTrue, ""), true},
		"asked the same":          {cluster(metav1.ConditionTrue, DeleteLeftovers), cluster(metav1.ConditionTrue, DeleteLeftovers), false},
		"asked, while it is down": {cluster(metav1.ConditionFalse, ""), cluster(metav1.ConditionFalse, DeleteLeftovers), true},
	} {
		if got := searchable.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.now}); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

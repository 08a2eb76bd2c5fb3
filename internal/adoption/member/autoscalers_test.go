package member

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

// cachedAutoscalers is a cache that has received some autoscalers.
type cachedAutoscalers struct {
	cache.Cache
	items []autoscalingv2.HorizontalPodAutoscaler
}

func (c cachedAutoscalers) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*autoscalingv2.HorizontalPodAutoscalerList).Items = c.items
	return nil
}

// Replicas belong to an autoscaler as soon as there is one, also if the cache has yet to receive it; and a cluster that does not
// let the hub read autoscalers is not asked for each object.
func TestIsAutoscaled(t *testing.T) {
	scaler := func(apiVersion, kind, name string) autoscalingv2.HorizontalPodAutoscaler {
		return autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "scaler"},
			Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}},
		}
	}
	of := scaler("apps/v1", "Deployment", "it")
	elsewhere := scaler("apps/v1", "Deployment", "it")
	elsewhere.Namespace = "pay"
	deployment := func(replicas string) *unstructured.Unstructured {
		return adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: "+replicas+"}")
	}
	const first, again = "HorizontalPodAutoscaler ", "HorizontalPodAutoscaler shop"
	for name, c := range map[string]struct {
		object, live    *unstructured.Unstructured
		cached, present []autoscalingv2.HorizontalPodAutoscaler
		want            bool
		listed          string
	}{
		"an object without replicas":              {adoptiontest.Object(t, "ConfigMap v1"), nil, []autoscalingv2.HorizontalPodAutoscaler{of}, nil, false, ""},
		"an autoscaler that the cache has":        {deployment("2"), deployment("3"), []autoscalingv2.HorizontalPodAutoscaler{of}, nil, true, first},
		"an autoscaler of another version":        {deployment("2"), nil, []autoscalingv2.HorizontalPodAutoscaler{scaler("apps/v1beta1", "Deployment", "it")}, nil, true, first},
		"an autoscaler of another group":          {deployment("2"), nil, []autoscalingv2.HorizontalPodAutoscaler{scaler("extra/v1", "Deployment", "it")}, nil, false, first},
		"an autoscaler of another kind":           {deployment("2"), nil, []autoscalingv2.HorizontalPodAutoscaler{scaler("apps/v1", "StatefulSet", "it")}, nil, false, first},
		"an autoscaler of another object":         {deployment("2"), nil, []autoscalingv2.HorizontalPodAutoscaler{scaler("apps/v1", "Deployment", "cart")}, nil, false, first},
		"one that the cache has yet to receive":   {deployment("2"), deployment("3"), nil, []autoscalingv2.HorizontalPodAutoscaler{of}, true, first + "," + again},
		"one of another namespace":                {deployment("2"), deployment("3"), nil, []autoscalingv2.HorizontalPodAutoscaler{elsewhere}, false, first + "," + again},
		"no replicas would change":                {deployment("2"), deployment("2"), nil, []autoscalingv2.HorizontalPodAutoscaler{of}, false, first},
		"the object is created with its replicas": {deployment("2"), nil, nil, []autoscalingv2.HorizontalPodAutoscaler{of}, false, first},
	} {
		t.Run(name, func(t *testing.T) {
			var present []client.Object
			for i := range c.present {
				present = append(present, c.present[i].DeepCopy())
			}
			west := adoptiontest.NewAPI(t, nil, present...)
			var lists []string
			west.OnList = func(kind, namespace string) error {
				lists = append(lists, kind+" "+namespace)
				return nil
			}
			m := &Client{Name: "west", API: west, cache: cachedAutoscalers{items: c.cached}}
			got, err := m.IsAutoscaled(t.Context(), c.object, c.live)
			if err != nil || got != c.want {
				t.Errorf("%t, %v", got, err)
			}
			if listed := strings.Join(lists, ","); listed != c.listed {
				t.Errorf("listed: %s", listed)
			}
		})
	}
}

func TestAutoscalersNotReadable(t *testing.T) {
	object, live := adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 2}"), adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 3}")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}, "", errors.New("no"))
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, SearchedVersions: []string{"v2"}}
	for name, c := range map[string]struct {
		fail   error
		failed bool
		// asked is how many lists two calls make.
		asked int
	}{
		"the hub may not list them": {forbidden, false, 1},
		"the cluster has none":      {noMatch, false, 1},
		"the cluster fails":         {apierrors.NewInternalError(errors.New("no leader")), true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			west, asked := adoptiontest.NewAPI(t, nil), 0
			west.OnList = func(string, string) error {
				asked++
				return c.fail
			}
			m := &Client{Name: "west", API: west, cache: cachedAutoscalers{}}
			for range 2 {
				got, err := m.IsAutoscaled(t.Context(), object, live)
				if got || (err != nil) != c.failed || err != nil && !strings.Contains(err.Error(), "list the autoscalers of cluster west: ") {
					t.Errorf("%t, %v", got, err)
				}
			}
			if asked != c.asked {
				t.Errorf("asked %d times", asked)
			}
			// A rule that is added is found after a while.
			west.OnList = nil
			m.autoscalersRefused = time.Now().Add(-refusalInterval)
			if readable, err := m.autoscalersReadable(t.Context()); !readable || err != nil {
				t.Errorf("%t, %v", readable, err)
			}
		})
	}
}

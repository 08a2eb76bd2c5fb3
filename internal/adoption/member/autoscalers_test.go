package member

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	const first, again = "GET horizontalpodautoscalers", "GET horizontalpodautoscalers/shop"
	for name, c := range map[string]struct {
		object, live    *unstructured.Unstructured
		cached, present []autoscalingv2.HorizontalPodAutoscaler
		want            bool
		requests        string
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
			s := adoptiontest.NewAPIServer(t)
			for i := range c.present {
				s.Put(t, &c.present[i])
			}
			m := &Client{Name: "west", API: s.Client(t), cache: cachedAutoscalers{items: c.cached}}
			got, err := m.IsAutoscaled(t.Context(), c.object, c.live)
			if err != nil || got != c.want {
				t.Errorf("%t, %v", got, err)
			}
			if requests := strings.Join(s.Requests(true), ","); requests != c.requests {
				t.Errorf("requests: %s", requests)
			}
		})
	}
}

func TestAutoscalersNotReadable(t *testing.T) {
	object, live := adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 2}"), adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 3}")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}, "", errors.New("no"))
	for name, c := range map[string]struct {
		fail    error
		without bool
		failed  bool
		// asked is how many requests two calls make.
		asked int
	}{
		"the hub may not list them": {forbidden, false, false, 1},
		"the cluster has none":      {nil, true, false, 0},
		"the cluster fails":         {apierrors.NewInternalError(errors.New("no leader")), false, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := adoptiontest.NewAPIServer(t)
			s.Without = map[string]bool{"HorizontalPodAutoscaler": c.without}
			s.Fail = failAt(http.MethodGet, "/horizontalpodautoscalers", c.fail)
			m := &Client{Name: "west", API: s.Client(t), cache: cachedAutoscalers{}}
			for range 2 {
				got, err := m.IsAutoscaled(t.Context(), object, live)
				if got || (err != nil) != c.failed || err != nil && !strings.Contains(err.Error(), "list the autoscalers of cluster west: ") {
					t.Errorf("%t, %v", got, err)
				}
			}
			if requests := s.Requests(true); len(requests) != c.asked {
				t.Errorf("requests: %v", requests)
			}
			// A rule that is added is found after a while.
			s.Fail, s.Without = nil, nil
			m.autoscalersRefused = time.Now().Add(-refusalInterval)
			m.API = s.Client(t)
			if readable, err := m.autoscalersReadable(t.Context()); !readable || err != nil {
				t.Errorf("%t, %v", readable, err)
			}
		})
	}
}

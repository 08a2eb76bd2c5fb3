package work

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// A cluster that is back is not called checked before its bindings say what its Works say.
func TestIsReported(t *testing.T) {
	bound := func(cluster string, items ...workv1alpha2.AggregatedStatusItem) *model.Binding {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "it-configmap"})
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster}}
		b.Status.AggregatedStatus = items
		return b
	}
	item := func(applied bool, reason passage.Code) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: "west", Applied: applied, Reason: string(reason)}
	}
	said := func(is metav1.ConditionStatus, reason passage.Code) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: is, Reason: string(reason)}}
		return w
	}
	applied, conflict := said(metav1.ConditionTrue, model.ReasonApplied), said(metav1.ConditionFalse, model.ReasonConflict)
	deleted := conflict.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	for name, c := range map[string]struct {
		work    *workv1alpha1.Work
		binding *model.Binding
		want    bool
	}{
		"both applied":                       {applied, bound("west", item(true, "")), true},
		"applied now":                        {applied, bound("west", item(false, model.ReasonUnreachable)), false},
		"in conflict now":                    {conflict, bound("west", item(true, "")), false},
		"in conflict, which was waited for":  {conflict, bound("west", item(false, model.ReasonUnreachable)), false},
		"both in conflict":                   {conflict, bound("west", item(false, model.ReasonConflict)), true},
		"a Work that is not as it should be": {applied, bound("west", item(false, model.ReasonNotApplied)), true},
		"nothing is said of the cluster":     {applied, bound("west"), false},
		"the Work says nothing":              {&workv1alpha1.Work{}, bound("west", item(true, "")), false},
		"it goes elsewhere":                  {conflict, bound("east"), true},
		"no binding":                         {conflict, nil, true},
		"deleted":                            {deleted, bound("west", item(true, "")), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isReported(c.work, "west", c.binding); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A Work counts as compared when there is an answer of its cluster, which is back, and not if the cluster is lost or does not answer.
func TestWorkIsRechecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *stage)
		want   bool
	}{
		"not answered": {func(_ *testing.T, s *stage) {
			s.west.On = failing(map[string]error{"get": apierrors.NewServerTimeout(configMaps, "get", 1)})
		}, false},
		"read in vain": {func(_ *testing.T, s *stage) {
			s.west.On = failing(map[string]error{"get": errors.New("timeout")})
		}, false},
		"may not be read": {func(_ *testing.T, s *stage) { s.west.On = failing(map[string]error{"get": forbidden}) }, true},
		"gone": {func(t *testing.T, s *stage) {
			s.work.Finalizers = nil
			if err := s.hub.Update(t.Context(), s.work); err != nil {
				t.Fatal(err)
			}
			if err := s.hub.Delete(t.Context(), s.work); err != nil {
				t.Fatal(err)
			}
		}, true},
		"lost": {func(t *testing.T, s *stage) {
			west := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
			s.hub.Exists(t, west)
			west.Status.Conditions[0].Status = metav1.ConditionFalse
			if err := s.hub.Update(t.Context(), west); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, workFor(t, false), adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}"))
			key := client.ObjectKeyFromObject(s.work)
			s.reconciler.rechecks.Start("west", []types.NamespacedName{key})
			c.change(t, s)
			_, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			if (len(s.rechecked) == 1) != c.want {
				t.Errorf("compared: %v, %v", s.rechecked, err)
			}
		})
	}
}

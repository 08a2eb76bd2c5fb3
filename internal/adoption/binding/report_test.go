package binding

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestAggregateStatus(t *testing.T) {
	now := deletionTime.Time
	work := func(generation, observed int64, is metav1.ConditionStatus, reason passage.Code, message string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: is, Reason: string(reason), Message: message, ObservedGeneration: observed}}
		return w
	}
	applied := work(1, 1, metav1.ConditionTrue, model.ReasonApplied, "")
	conflict := work(1, 1, metav1.ConditionFalse, model.ReasonConflict, "exists in cluster")
	refused := work(1, 1, metav1.ConditionFalse, model.ReasonFailed, "denied")
	outdated := work(2, 1, metav1.ConditionTrue, model.ReasonApplied, "")
	for name, c := range map[string]struct {
		clusters      []string
		works         map[string]*workv1alpha1.Work
		age           time.Duration
		annotationErr error
		reason        passage.Code
		message       string
		requeue       time.Duration
	}{
		"no cluster":              {nil, nil, time.Hour, nil, model.ReasonNoCluster, "spec.placement of the policy selects none of the joined clusters", 0},
		"one, applied":            {[]string{"west"}, map[string]*workv1alpha1.Work{"west": applied}, 0, nil, model.ReasonFullyApplied, "applied in cluster west", 0},
		"two, applied":            {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": applied, "west": applied}, 0, nil, model.ReasonFullyApplied, "applied in all 2 clusters", 0},
		"a conflict":              {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": applied, "west": conflict}, 0, nil, model.ReasonConflict, "applied in 1 of 2 clusters; exists in cluster", 0},
		"the first counts":        {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": refused, "west": conflict}, 0, nil, model.ReasonNotApplied, "applied in 0 of 2 clusters; denied", 0},
		"new, and one is waiting": {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": applied}, 5 * time.Second, nil, "", "", 15 * time.Second},
		"old, and one is waiting": {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": applied}, time.Minute, nil, model.ReasonApplying, "applied in 1 of 2 clusters", 0},
		"an outdated status":      {[]string{"west"}, map[string]*workv1alpha1.Work{"west": outdated}, time.Minute, nil, model.ReasonApplying, "applied in 0 of 1 clusters", 0},
		"an unknown annotation":   {[]string{"west"}, map[string]*workv1alpha1.Work{"west": applied}, 0, errors.New("annotation x is wrong"), model.ReasonFullyApplied, "applied in cluster west; annotation x is wrong", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			b.SetGeneration(7)
			b.SetCreationTimestamp(metav1.NewTime(now.Add(-c.age)))
			for _, cluster := range c.clusters {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
			}
			status, requeue := AggregateStatus(b, c.works, Source{Version: "v2", AnnotationErr: c.annotationErr}, now)
			if requeue != c.requeue || status.ObservedGeneration != 7 || status.TemplateVersion != "v2" || len(status.AggregatedStatus) != len(c.clusters) {
				t.Errorf("again after %s, %d items of generation %d", requeue, len(status.AggregatedStatus), status.ObservedGeneration)
			}
			if requeue > 0 {
				return
			}
			got := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionFullyApplied)
			if got.Reason != string(c.reason) || got.Message != c.message || (got.Status == metav1.ConditionTrue) != (c.reason == model.ReasonFullyApplied) {
				t.Errorf("got %s %s: %s", got.Status, got.Reason, got.Message)
			}
			scheduled := meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.ConditionScheduled)
			if scheduled != (len(c.clusters) > 0) {
				t.Errorf("scheduled: %t", scheduled)
			}
		})
	}
}

// The resource is named, and the remedy, when its Work is too large for the hub.
func TestStatusOfAWorkTooLarge(t *testing.T) {
	b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "big-configmap"})
	b.Spec.Resource = workv1alpha2.ObjectReference{Kind: "ConfigMap", Namespace: "shop", Name: "big"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
	status := workTooLarge(b, "west", errors.New("limit is 3145728")).status(b, nil, Source{Version: "v2"}, deletionTime.Time)
	got := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionFullyApplied)
	const want = "ConfigMap shop/big is too large for a Work of cluster west (limit is 3145728): split the resource"
	if got.Message != want || got.Reason != string(model.ReasonNotApplied) {
		t.Errorf("got %s: %s", got.Reason, got.Message)
	}
	if items := status.AggregatedStatus; len(items) != 1 || items[0].Applied || items[0].Reason != string(model.ReasonNotApplied) || items[0].AppliedMessage != want {
		t.Errorf("of its cluster: %+v", items)
	}
}

// A binding whose policy is refused says so, and keeps saying what runs in its clusters. Reporting it again changes nothing.
func TestAggregateStatusOfRefused(t *testing.T) {
	now := deletionTime.Time
	for name, clusters := range map[string][]workv1alpha2.TargetCluster{"new": nil, "placed before": {{Name: "west"}}} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			b.Spec.Clusters = clusters
			model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
			model.SetUnsupportedFields(b, []string{"spec.failover"})
			status, requeue := AggregateStatus(b, nil, Source{}, now)
			if requeue != 0 || len(status.AggregatedStatus) != len(clusters) {
				t.Errorf("again after %s, %d items", requeue, len(status.AggregatedStatus))
			}
			for _, kind := range []string{workv1alpha2.ConditionScheduled, workv1alpha2.ConditionFullyApplied} {
				got := meta.FindStatusCondition(status.Conditions, kind)
				if got.Status != metav1.ConditionFalse || got.Reason != "UnsupportedField" || !strings.HasPrefix(got.Message, "spec.failover is not supported: ") {
					t.Errorf("got %s %s: %s", got.Status, got.Reason, got.Message)
				}
			}
			*b.Status = status
			if again, _ := AggregateStatus(b, nil, Source{}, now.Add(time.Hour)); !equality.Semantic.DeepEqual(again, status) {
				t.Errorf("reported anew: %+v", again)
			}
		})
	}
}

package binding

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
		reported      bool // there is a status of an earlier version of the template
		annotationErr error
		reason        passage.Code
		message       string
		requeue       time.Duration
	}{
		"no cluster":                        {nil, nil, time.Hour, false, nil, model.ReasonNoCluster, "spec.placement of the policy selects none of the joined clusters", 0},
		"one, applied":                      {[]string{"west"}, map[string]*workv1alpha1.Work{"west": applied}, 0, false, nil, model.ReasonFullyApplied, "applied in cluster west", 0},
		"two, applied":                      {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": applied, "west": applied}, 0, false, nil, model.ReasonFullyApplied, "applied in all 2 clusters", 0},
		"a conflict":                        {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": applied, "west": conflict}, 0, false, nil, model.ReasonConflict, "applied in 1 of 2 clusters; exists in cluster", 0},
		"the first counts":                  {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": refused, "west": conflict}, 0, false, nil, model.ReasonNotApplied, "applied in 0 of 2 clusters; denied", 0},
		"new, and one is waiting":           {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": applied}, 5 * time.Second, false, nil, "", "", 15 * time.Second},
		"new, and the template has changed": {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": applied, "west": outdated}, 5 * time.Second, true, nil, model.ReasonApplying, "applied in 1 of 2 clusters", 0},
		"old, and one is waiting":           {[]string{"east", "west"}, map[string]*workv1alpha1.Work{"east": applied}, time.Minute, false, nil, model.ReasonApplying, "applied in 1 of 2 clusters", 0},
		"an outdated status":                {[]string{"west"}, map[string]*workv1alpha1.Work{"west": outdated}, time.Minute, false, nil, model.ReasonApplying, "applied in 0 of 1 clusters", 0},
		"an unknown annotation":             {[]string{"west"}, map[string]*workv1alpha1.Work{"west": applied}, 0, false, errors.New("annotation x is wrong"), model.ReasonFullyApplied, "applied in cluster west; annotation x is wrong", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			b.SetGeneration(7)
			model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
			b.SetCreationTimestamp(metav1.NewTime(now.Add(-c.age)))
			for _, cluster := range c.clusters {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
			}
			if c.reported {
				b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.ConditionFullyApplied, Status: metav1.ConditionTrue, Reason: string(model.ReasonFullyApplied), ObservedGeneration: 7}}
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

// The status of a binding fits into the hub's store, however many clusters say however much.
func TestAggregateStatusIsBounded(t *testing.T) {
	b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
	works := map[string]*workv1alpha1.Work{}
	const clusters = 2000
	for i := range clusters {
		name := fmt.Sprintf("cluster-%d", i)
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
		w := &workv1alpha1.Work{}
		w.Status.Conditions = []metav1.Condition{{
			Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: string(model.ReasonConflict), Message: strings.Repeat("m", 1024),
		}}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(`"` + strings.Repeat("s", 2000) + `"`)}, Health: "Healthy"}}
		works[name] = w
	}
	status, _ := AggregateStatus(b, works, Source{}, deletionTime.Time)
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	// The store takes 1.5 MiB, with the fields that each manager owns.
	if len(text) > 800<<10 {
		t.Errorf("the status has %d KiB", len(text)>>10)
	}
	if len(status.AggregatedStatus) != clusters {
		t.Fatalf("%d clusters have an item", len(status.AggregatedStatus))
	}
	first, last := status.AggregatedStatus[0], status.AggregatedStatus[clusters-1]
	if first.Status == nil || !strings.HasPrefix(first.AppliedMessage, "m") || last.Status != nil || last.AppliedMessage != seeWork || last.Reason != string(model.ReasonConflict) {
		t.Errorf("the first is %+v, and the last %+v", first, last)
	}

	b.Spec.Resource.Kind = "Job"
	for _, w := range works {
		w.Status.ManifestStatuses[0].Status.Raw = []byte(`{"completedIndexes":"` + strings.Repeat("1,", 1000) + `","conditions":[{"type":"Suspended","status":"False"},{"type":"Complete","status":"True","message":"m"}]}`)
	}
	jobs, _ := AggregateStatus(b, works, Source{}, deletionTime.Time)
	if got := jobs.AggregatedStatus[clusters-1].Status; got == nil || string(got.Raw) != `{"conditions":[{"type":"Complete","status":"True"}]}` {
		t.Errorf("of the last Job it keeps %+v", got)
	}
}

// The resource is named, and the remedy, when its Work is too large for the hub.
func TestStatusOfAWorkTooLarge(t *testing.T) {
	b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "big-configmap"})
	b.Spec.Resource = workv1alpha2.ObjectReference{Kind: "ConfigMap", Namespace: "shop", Name: "big"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
	model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
	status := (workRefusals{workTooLarge(b, "west", errors.New("limit is 3145728"))}).status(b, nil, Source{Version: "v2"}, deletionTime.Time)
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

// A binding that no policy takes says so, instead of waiting for clusters to which nothing will be written.
func TestAggregateStatusWithoutPolicy(t *testing.T) {
	now := deletionTime.Time
	applied := &workv1alpha1.Work{}
	applied.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: string(model.ReasonApplied)}}
	const karmada = ", which has the label resourcebinding.karmada.io/permanent-id of a control plane of Karmada"
	message := func(note string) string {
		return "no policy takes Deployment shop/cart, and nothing is written to clusters for ResourceBinding shop/cart-deployment" + note +
			": select the resource with a policy, such as a PropagationPolicy in namespace shop, or delete the binding"
	}
	inWest := strings.Replace(message(""), "to clusters for", "to cluster west for", 1)
	for name, c := range map[string]struct {
		change func(*model.Binding)
		works  map[string]*workv1alpha1.Work
		// message is that of the condition FullyApplied, and west what is said of that cluster.
		reason        passage.Code
		message, west string
	}{
		"written by hand": {nil, nil, model.ReasonNoPolicy, message(""), message("")},
		"written by Karmada": {func(b *model.Binding) { b.SetLabels(map[string]string{"resourcebinding.karmada.io/permanent-id": "1"}) }, nil,
			model.ReasonNoPolicy, message(karmada), message(karmada)},
		"without clusters":      {func(b *model.Binding) { b.Spec.Clusters = nil }, nil, model.ReasonNoPolicy, message(""), ""},
		"released":              {nil, map[string]*workv1alpha1.Work{"east": applied, "west": applied}, model.ReasonFullyApplied, "applied in all 2 clusters", ""},
		"released, one is gone": {nil, map[string]*workv1alpha1.Work{"east": applied}, model.ReasonNoPolicy, inWest, inWest},
		"required": {func(b *model.Binding) {
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "it", Clusters: []workv1alpha2.TargetCluster{{Name: "west"}}}}
		}, nil, model.ReasonApplying, "applied in 0 of 2 clusters", "nothing has been written to cluster west yet"},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}
			if c.change != nil {
				c.change(b)
			}
			status, again := AggregateStatus(b, c.works, Source{}, now)
			got := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionFullyApplied)
			if again > 0 || got == nil || got.Reason != string(c.reason) || got.Message != c.message {
				t.Errorf("again after %s, got %+v", again, got)
			}
			for _, item := range status.AggregatedStatus {
				if item.ClusterName == "west" && item.AppliedMessage != c.west {
					t.Errorf("of west: %s", item.AppliedMessage)
				}
			}
		})
	}
}

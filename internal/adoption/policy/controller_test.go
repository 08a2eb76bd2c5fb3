package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/api/fairlead"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// stage is a hub with policies and bindings, and the controller that reports on the policies.
type stage struct {
	*adoptiontest.API
	reconciler *reconciler
	events     chan string
	kindError  error
}

func newStage(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	recorder := events.NewFakeRecorder(10)
	s := &stage{events: recorder.Events, API: adoptiontest.NewAPI(t, func(b *fake.ClientBuilder) {
		for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
			b.WithIndex(kind, model.IndexPolicy, model.PolicyIndexValues).WithIndex(kind, model.IndexRequiredBy, model.RequiredByIndexValues)
		}
	}, objects...)}
	s.reconciler = &reconciler{
		client: s, recorder: recorder, now: func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) },
		kindError: func(context.Context, *Policy) error { return s.kindError },
	}
	return s
}

func (s *stage) reconcile(t *testing.T, key model.PolicyKey) (ctrl.Result, error) {
	t.Helper()
	s.Writes = nil
	return s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
}

// newEvents are the events since the last call.
func (s *stage) newEvents() (all []string) {
	for len(s.events) > 0 {
		all = append(all, <-s.events)
	}
	return all
}

func namespaced(generation int64) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Generation: generation}}
}

// reported is a binding of a policy in a state.
func reported(namespace, name string, by *Policy, is metav1.ConditionStatus, reason passage.Code, message string) client.Object {
	b := model.NewBinding(client.ObjectKey{Namespace: namespace, Name: name})
	b.Spec.ConflictResolution, b.Spec.Placement = policyv1alpha1.ConflictAbort, &by.Spec.Placement
	model.Claim(b, by.Key())
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.ConditionFullyApplied, Status: is, Reason: string(reason), Message: message}}
	return b.Object
}

// The status follows the bindings, events follow the status, and nothing is written while nothing changes.
func TestReconcile(t *testing.T) {
	p := namespaced(3)
	cart := reported("shop", "cart-deployment", Of(p), metav1.ConditionFalse, model.ReasonConflict, "exists in cluster west")
	s := newStage(t, p, cart, reported("shop", "pay-deployment", Of(p), metav1.ConditionTrue, model.ReasonFullyApplied, ""))
	check := func(what string, is metav1.ConditionStatus, message string, wantEvents ...string) {
		t.Helper()
		if result, err := s.reconcile(t, Of(p).Key()); err != nil || result.RequeueAfter != 0 {
			t.Fatalf("%s: %v, %v", what, result, err)
		}
		s.Exists(t, p)
		ready := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionReady)
		if ready == nil || ready.Status != is || ready.Message != message || p.Status.ObservedGeneration != 3 || ready.ObservedGeneration != 3 {
			t.Errorf("%s: got %+v", what, p.Status)
		}
		if got := strings.Join(s.newEvents(), "; "); got != strings.Join(wantEvents, "; ") {
			t.Errorf("%s: events %s", what, got)
		}
	}
	const conflict = "1 of 2 resources exist already and are left alone, the first: exists in cluster west"
	check("a conflict", metav1.ConditionFalse, conflict, "Warning ResourceConflict "+conflict)
	if p.Status.Matched != 2 || p.Status.Applied != 1 || p.Status.Conflicting != 1 || p.Status.Failed != 0 {
		t.Errorf("got %+v", p.Status)
	}
	check("still a conflict", metav1.ConditionFalse, conflict)
	if len(s.Writes) > 0 {
		t.Errorf("nothing has changed, and %v is written", s.Writes)
	}
	s.Exists(t, cart)
	b := model.AsBinding(cart)
	b.Status.Conditions[0].Status, b.Status.Conditions[0].Reason = metav1.ConditionTrue, string(model.ReasonFullyApplied)
	if err := s.Status().Update(t.Context(), cart); err != nil {
		t.Fatal(err)
	}
	check("applied", metav1.ConditionTrue, "all 2 resources are applied in all of their clusters", "Normal Applied all 2 resources are applied in all of their clusters")
}

// Dependencies count once, whatever requires them, and only for a policy that propagates them.
func TestDependenciesAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		propagates bool
		matched    int32
	}{"propagated": {true, 3}, "not propagated": {false, 2}} {
		t.Run(name, func(t *testing.T) {
			p := namespaced(1)
			p.Spec.PropagateDeps = c.propagates
			settings := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "settings-configmap"})
			settings.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "cart-deployment"}, {Namespace: "shop", Name: "pay-deployment"}}
			s := newStage(t, p, settings.Object,
				reported("shop", "cart-deployment", Of(p), metav1.ConditionTrue, model.ReasonFullyApplied, ""),
				reported("shop", "pay-deployment", Of(p), metav1.ConditionTrue, model.ReasonFullyApplied, ""),
				reported("bank", "till-deployment", &Policy{Namespace: "bank", Name: "p"}, metav1.ConditionTrue, model.ReasonFullyApplied, ""))
			if _, err := s.reconcile(t, Of(p).Key()); err != nil {
				t.Fatal(err)
			}
			if s.Exists(t, p); p.Status.Matched != c.matched {
				t.Errorf("got %+v", p.Status)
			}
		})
	}
}

// A dependency is reported by the policies of all that require it, whatever takes it itself.
func TestReportingPolicies(t *testing.T) {
	p, q := &Policy{Namespace: "shop", Name: "p"}, &Policy{Namespace: "shop", Name: "q"}
	settings := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "settings-configmap"})
	settings.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "cart-deployment"}, {Namespace: "shop", Name: "gone-deployment"}}
	s := newStage(t, settings.Object, reported("shop", "cart-deployment", p, metav1.ConditionTrue, model.ReasonFullyApplied, ""))
	if diff := cmp.Diff([]model.PolicyKey{p.Key()}, reportingPolicies(t.Context(), s, settings)); diff != "" {
		t.Errorf("no policy takes it (-want +got)\n%s", diff)
	}
	model.Claim(settings, q.Key())
	if diff := cmp.Diff([]model.PolicyKey{q.Key(), p.Key()}, reportingPolicies(t.Context(), s, settings)); diff != "" {
		t.Errorf("another policy takes it (-want +got)\n%s", diff)
	}
}

// A kind that cannot be watched is tried again, even if the status already says so.
func TestKindErrorIsRetried(t *testing.T) {
	s := newStage(t, namespaced(1))
	s.kindError = errors.New("the hub has no kind Boat")
	for range 2 {
		if result, err := s.reconcile(t, model.PolicyKey{Namespace: "shop", Name: "p"}); err != nil || result.RequeueAfter != KindRetryInterval {
			t.Errorf("%v, %v", result, err)
		}
	}
	if len(s.Writes) > 0 || len(s.newEvents()) != 1 {
		t.Errorf("the second time, %v is written", s.Writes)
	}
}

// A policy of a namespace and one of the cluster may have the same name; the metrics of one that is gone go, the other's stay.
func TestMetricsOfAPolicy(t *testing.T) {
	resourcesByState.Reset()
	ofCluster := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	own := namespaced(1)
	s := newStage(t, own, ofCluster,
		reported("shop", "cart-deployment", Of(own), metav1.ConditionTrue, model.ReasonFullyApplied, ""),
		reported("", "admin-clusterrole", Of(ofCluster), metav1.ConditionFalse, model.ReasonNotApplied, "denied"),
		reported("shop", "pay-deployment", Of(ofCluster), metav1.ConditionFalse, model.ReasonNotApplied, "denied"))
	for _, key := range []model.PolicyKey{Of(own).Key(), Of(ofCluster).Key()} {
		if _, err := s.reconcile(t, key); err != nil {
			t.Fatal(err)
		}
	}
	const cluster = "/p applied 0, /p conflicting 0, /p failed 2, /p pending 0"
	if got, want := gauges(t), cluster+", shop/p applied 1, shop/p conflicting 0, shop/p failed 0, shop/p pending 0"; got != want {
		t.Errorf("got %s", got)
	}
	if err := s.Delete(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconcile(t, Of(own).Key()); err != nil || gauges(t) != cluster {
		t.Errorf("after the deletion: %s, %v", gauges(t), err)
	}
}

// gauges are the numbers of resources of the policies that are called p.
func gauges(t *testing.T) string {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		if family.GetName() != "fairlead_adoption_resources" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range m.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			all = append(all, fmt.Sprintf("%s/%s %s %v", labels["namespace"], labels["policy"], labels["state"], m.GetGauge().GetValue()))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// A policy that is deleted while it is reported on is no error; a status that is not written has no event.
func TestStatusThatIsNotWritten(t *testing.T) {
	policies := schema.GroupResource{Group: "policy.karmada.io", Resource: "propagationpolicies"}
	for name, c := range map[string]struct {
		err    error
		failed bool
	}{
		"deleted":   {apierrors.NewNotFound(policies, "p"), false},
		"conflict":  {apierrors.NewConflict(policies, "p", errors.New("changed")), true},
		"forbidden": {apierrors.NewForbidden(policies, "p", errors.New("no")), true},
	} {
		t.Run(name, func(t *testing.T) {
			p := namespaced(1)
			s := newStage(t, p, reported("shop", "cart-deployment", Of(p), metav1.ConditionTrue, model.ReasonFullyApplied, ""))
			s.On = func(verb string, _ client.Object) error {
				if verb == "apply status" {
					return c.err
				}
				return nil
			}
			if _, err := s.reconcile(t, Of(p).Key()); (err != nil) != c.failed {
				t.Errorf("got %v", err)
			}
			if said := s.newEvents(); c.failed && len(said) > 0 {
				t.Errorf("events: %v", said)
			}
		})
	}
}

// Of several resources in one state, the first by name is quoted, so that the message stays the same.
func TestTheFirstIsQuoted(t *testing.T) {
	p := Of(namespaced(0))
	for reason, code := range map[passage.Code]passage.Code{
		model.ReasonConflict: model.ReasonConflict, model.ReasonNotApplied: model.ReasonFailed, model.ReasonSuspended: model.ReasonSuspended,
	} {
		var bindings []*model.Binding
		for _, name := range []string{"pay", "cart", "till"} {
			bindings = append(bindings, model.AsBinding(reported("shop", name, p, metav1.ConditionFalse, reason, "because of "+name)))
		}
		if _, got := Count(p, bindings, nil).Condition(p); got.Code != code || !strings.HasSuffix(got.Message, ": because of cart") {
			t.Errorf("%s: got %s", reason, got)
		}
	}
}

// What users ask for on a policy is read from its annotations; any other value than true asks for nothing.
func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		annotations     map[string]string
		paused, aborted bool
		suspended       bool
	}{
		"nothing":         {nil, false, false, false},
		"paused":          {map[string]string{fairlead.AnnotationPaused: "true"}, true, false, true},
		"resumed":         {map[string]string{fairlead.AnnotationPaused: "false"}, false, false, false},
		"aborted":         {map[string]string{model.AnnotationAborted: "true"}, false, true, false},
		"started again":   {map[string]string{model.AnnotationAborted: ""}, false, false, false},
		"spelled wrongly": {map[string]string{model.AnnotationAborted: "True", fairlead.AnnotationPaused: "yes"}, false, false, false},
	} {
		for _, object := range []client.Object{&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{}} {
			object.SetAnnotations(c.annotations)
			p := Of(object)
			suspension := SuspensionOf(p)
			if p.Paused != c.paused || p.Aborted != c.aborted || p.Status == nil || (suspension != nil && *suspension.Dispatching) != c.suspended {
				t.Errorf("%s: got %+v", name, p)
			}
		}
	}
	if Of(&workv1alpha2.ResourceBinding{}) != nil {
		t.Error("a binding is a policy")
	}
}

// A status that the operator writes does not enqueue its policy again; pausing or aborting does, though the spec stays the same.
func TestRequestChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*policyv1alpha1.PropagationPolicy)
		want   bool
	}{
		"the status":     {func(p *policyv1alpha1.PropagationPolicy) { p.Status.Matched, p.ResourceVersion = 1, "2" }, false},
		"a label":        {func(p *policyv1alpha1.PropagationPolicy) { p.Labels = map[string]string{"a": "b"} }, false},
		"the generation": {func(p *policyv1alpha1.PropagationPolicy) { p.Generation = 2 }, true},
		"aborted": {func(p *policyv1alpha1.PropagationPolicy) {
			p.Annotations = map[string]string{model.AnnotationAborted: "true"}
		}, true},
	} {
		before := namespaced(1)
		after := before.DeepCopy()
		c.change(after)
		if got := RequestChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// A cluster that is listed and has not joined is named on the policy, which is not ready before it has joined and has all that the
// policy takes. The other clusters do not wait.
func TestClusterThatHasNotJoined(t *testing.T) {
	p := namespaced(1)
	p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west", "esat"}}
	cart := reported("shop", "cart-deployment", Of(p), metav1.ConditionTrue, model.ReasonFullyApplied, "")
	model.AsBinding(cart).Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
	s := newStage(t, p, cart, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}})
	check := func(what string, is metav1.ConditionStatus, code passage.Code, message string) {
		t.Helper()
		if _, err := s.reconcile(t, Of(p).Key()); err != nil {
			t.Fatal(err)
		}
		s.Exists(t, p)
		if ready := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionReady); ready.Status != is || ready.Reason != string(code) || ready.Message != message {
			t.Errorf("%s: got %+v", what, ready)
		}
	}
	const notJoined = "spec.placement names clusters that have not joined the hub, or are leaving it: esat; correct the names, or join the clusters with `fairlead join`; "
	check("not joined", metav1.ConditionFalse, "ClusterNotJoined", notJoined+"all 1 resources are applied in the clusters that have joined")
	if got := strings.Join(s.newEvents(), "; "); !strings.HasPrefix(got, "Warning ClusterNotJoined spec.placement names clusters") {
		t.Errorf("events %s", got)
	}
	esat := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "esat", Finalizers: []string{model.FinalizerCluster}}}
	if err := s.Create(t.Context(), esat); err != nil {
		t.Fatal(err)
	}
	check("joined, and the binding does not go there yet", metav1.ConditionUnknown, model.ReasonApplying, "0 of 1 resources are applied")
	s.Exists(t, cart)
	model.AsBinding(cart).Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "esat"}, {Name: "west"}}
	if err := s.Update(t.Context(), cart); err != nil {
		t.Fatal(err)
	}
	check("applied", metav1.ConditionTrue, model.ReasonAllApplied, "all 1 resources are applied in all of their clusters")
	if err := s.Delete(t.Context(), esat); err != nil {
		t.Fatal(err)
	}
	check("leaving", metav1.ConditionUnknown, model.ReasonApplying, notJoined+"0 of 1 resources are applied")
}

// A policy is reported on again when a cluster that it lists joins or leaves.
func TestPoliciesNaming(t *testing.T) {
	named, weighted, other, all := namespaced(1), namespaced(1), namespaced(1), namespaced(1)
	named.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west", "east"}}
	weighted.Name = "weighted"
	weighted.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaScheduling{
		ReplicaSchedulingType: policyv1alpha1.ReplicasDivided, WeightPreference: &policyv1alpha1.ClusterPreferences{
			StaticWeightList: []policyv1alpha1.StaticClusterWeight{{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}, Weight: 1}},
		},
	}
	other.Name, all.Name = "other", "all"
	other.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
	ofCluster := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "global"}, Spec: named.Spec}
	var got []string
	for _, r := range policiesNaming(t.Context(), newStage(t, named, weighted, other, all, ofCluster), "west") {
		got = append(got, r.String())
	}
	if diff := cmp.Diff([]string{"/global", "shop/p", "shop/weighted"}, got); diff != "" {
		t.Error(diff)
	}
	leaving := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}
	for name, c := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"its status": {&clusterv1alpha1.Cluster{}, &clusterv1alpha1.Cluster{}, false},
		"leaving":    {&clusterv1alpha1.Cluster{}, leaving, true},
		"left":       {leaving, leaving, false},
	} {
		if got := joinedOrLeft.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// While a policy has a field that is not supported, its condition Scheduled says so; afterwards there is none.
func TestScheduledOfUnsupported(t *testing.T) {
	p := namespaced(1)
	p.Spec.Failover = &policyv1alpha1.FailoverBehavior{}
	s := newStage(t, p)
	for range 2 {
		if _, err := s.reconcile(t, Of(p).Key()); err != nil {
			t.Fatal(err)
		}
		s.Exists(t, p)
		for _, kind := range []string{policyv1alpha1.ConditionScheduled, policyv1alpha1.ConditionReady} {
			got := meta.FindStatusCondition(p.Status.Conditions, kind)
			if got == nil || got.Status != metav1.ConditionFalse || got.Reason != "UnsupportedField" || !strings.HasPrefix(got.Message, "spec.failover is not supported: ") {
				t.Errorf("%s: got %v", kind, got)
			}
		}
	}
	if len(s.Writes) > 0 {
		t.Errorf("nothing has changed, and %v is written", s.Writes)
	}
	p.Spec.Failover = nil
	if err := s.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconcile(t, Of(p).Key()); err != nil {
		t.Fatal(err)
	}
	s.Exists(t, p)
	if got := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionScheduled); got != nil {
		t.Errorf("got %v", got)
	}
}

package member

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

func workOfWest(name string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: name}}
}

// begin is a comparison of a Work with its object.
func (o *operator) begin(name string) (done func()) {
	return o.members.Rechecks.Begin("west", client.ObjectKey{Namespace: "karmada-es-west", Name: name})
}

// A cluster that was lost is synced again when each of its Works has been compared with its object since.
func TestRecheck(t *testing.T) {
	o := newOperator(t, nil)
	reconcile := func(what string, code int, want metav1.ConditionStatus, writes int) {
		t.Helper()
		o.server.respond(code)
		o.hub.Writes, o.enqueued = nil, nil
		o.reconcile(t)
		synced := meta.FindStatusCondition(o.cluster(t).Status.Conditions, clusterv1alpha1.ConditionSynced)
		if synced == nil || synced.Status != want || len(o.hub.Writes) != writes {
			t.Errorf("%s: %+v, written: %v", what, synced, o.hub.Writes)
		}
		slices.Sort(o.enqueued)
	}
	reconcile("joined, without Works", 200, metav1.ConditionTrue, 1)
	for _, name := range []string{"cart", "pay"} {
		if err := o.hub.Create(t.Context(), workOfWest(name)); err != nil {
			t.Fatal(err)
		}
	}
	reconcile("new Works", 200, metav1.ConditionTrue, 0)
	if o.begin("cart") != nil {
		t.Error("a Work that is new is compared once more")
	}
	reconcile("lost", 503, metav1.ConditionUnknown, 1)
	reconcile("back", 200, metav1.ConditionFalse, 1)
	if len(o.enqueued) > 0 {
		t.Errorf("the condition Ready enqueues Works, and so does the controller: %v", o.enqueued)
	}
	early := o.begin("cart")
	reconcile("lost again", 503, metav1.ConditionUnknown, 1)
	reconcile("back again", 200, metav1.ConditionFalse, 1)
	early()
	reconcile("compared before it was lost", 200, metav1.ConditionFalse, 0)
	if !slices.Equal(o.enqueued, []string{"cart", "pay"}) {
		t.Errorf("enqueued are %v", o.enqueued)
	}
	o.begin("cart")()
	reconcile("one of two is compared", 200, metav1.ConditionFalse, 0)
	if !slices.Equal(o.enqueued, []string{"pay"}) || len(o.finished) > 0 {
		t.Errorf("enqueued are %v, finished %v", o.enqueued, o.finished)
	}

	o.restart(t)
	reconcile("the operator is restarted", 200, metav1.ConditionFalse, 0)
	if !slices.Equal(o.enqueued, []string{"cart", "pay"}) {
		t.Errorf("enqueued are %v", o.enqueued)
	}
	o.begin("cart")()
	o.begin("pay")()
	if !slices.Equal(o.finished, []string{"west"}) || o.begin("pay") != nil {
		t.Errorf("finished: %v", o.finished)
	}
	reconcile("all are compared", 200, metav1.ConditionTrue, 1)
	o.restart(t)
	reconcile("nothing has changed", 200, metav1.ConditionTrue, 0)
}

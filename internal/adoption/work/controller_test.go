package work

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A member that is disconnected while its Work is reconciled fails a request, and not the operator.
func TestReconcileWhileMemberDisconnects(t *testing.T) {
	for name, deleted := range map[string]bool{"apply": false, "release": true} {
		t.Run(name, func(t *testing.T) {
			hub := &hubStub{work: workFor(t, deleted)}
			calls := 0
			r := &reconciler{client: hub, now: time.Now, rechecks: &member.Rechecks{}, clientOf: func(string) *member.Client {
				if calls++; calls > 1 {
					return nil
				}
				return &member.Client{Name: "west", API: refusingMember{}}
			}}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hub.work)})
			if err != nil || result.RequeueAfter != RecheckInterval {
				t.Errorf("%v, %v", result, err)
			}
			if !meta.IsStatusConditionFalse(hub.written, workv1alpha1.ConditionApplied) {
				t.Errorf("the refusal is not reported: %v", hub.written)
			}
		})
	}
}

// What was written to a member is recorded even if another client has labelled the Work meanwhile, but not if its manifests changed.
func TestStatusConflict(t *testing.T) {
	for name, c := range map[string]struct {
		generation int64
		conflicts  int
		written    bool
	}{
		"metadata changed":       {1, 1, true},
		"metadata changed twice": {1, 2, false},
		"manifests changed":      {2, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			hub := &hubStub{work: workFor(t, false), conflicts: c.conflicts}
			read := hub.work.DeepCopy()
			read.Generation, hub.work.Generation = 1, c.generation
			r := &reconciler{client: hub, reader: hub, now: time.Now}
			status := workv1alpha1.WorkStatus{Conditions: []metav1.Condition{{Type: workv1alpha1.ConditionApplied}}}
			err := r.writeStatus(t.Context(), read, status)
			if (err == nil) != c.written || (len(hub.written) > 0) != c.written || err != nil && !apierrors.IsConflict(err) {
				t.Errorf("%v, written: %v", err, hub.written)
			}
		})
	}
}

func workFor(t *testing.T, deleted bool) *workv1alpha1.Work {
	raw, err := adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: model.ExecutionNamespace("west"), Name: "it", UID: "it", Finalizers: []string{model.FinalizerExecution},
	}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	if deleted {
		work.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	return work
}

// hubStub has a Work and its Cluster, which is ready, and keeps the conditions that are written.
type hubStub struct {
	client.Client
	work      *workv1alpha1.Work
	written   []metav1.Condition
	conflicts int
}

func (h *hubStub) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch object := object.(type) {
	case *workv1alpha1.Work:
		h.work.DeepCopyInto(object)
	case *clusterv1alpha1.Cluster:
		object.Name = "west"
		object.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	}
	return nil
}

func (h *hubStub) Status() client.SubResourceWriter { return statusWriter{hub: h} }

type statusWriter struct {
	client.SubResourceWriter
	hub *hubStub
}

func (w statusWriter) Apply(_ context.Context, configuration runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	if w.hub.conflicts > 0 {
		w.hub.conflicts--
		return apierrors.NewConflict(schema.GroupResource{Resource: "works"}, "it", nil)
	}
	text, err := json.Marshal(configuration)
	if err != nil {
		return err
	}
	var applied workv1alpha1.Work
	err = json.Unmarshal(text, &applied)
	w.hub.written = applied.Status.Conditions
	return err
}

// refusingMember forbids to read objects.
type refusingMember struct{ client.Client }

func (refusingMember) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "it", nil)
}

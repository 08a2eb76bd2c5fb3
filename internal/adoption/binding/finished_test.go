package binding

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A Work that replaces a deleted one knows whether its Job has finished, by the status of the binding.
func TestNewWorkOfAFinishedJob(t *testing.T) {
	const job, ttl = "Job batch/v1\nspec: {}", "Job batch/v1\nspec: {ttlSecondsAfterFinished: 5}"
	const complete, running = `{"conditions":[{"type":"Complete","status":"True"}]}`, `{"active":1}`
	for name, c := range map[string]struct {
		template, status string
		change           func(*workv1alpha2.ResourceBindingStatus)
		want             bool
	}{
		"finished":                          {job, complete, nil, true},
		"running":                           {job, running, nil, false},
		"running, and removed by its TTL":   {ttl, running, nil, true},
		"another version of the template":   {job, complete, func(s *workv1alpha2.ResourceBindingStatus) { s.TemplateVersion = "earlier" }, false},
		"not applied":                       {ttl, complete, func(s *workv1alpha2.ResourceBindingStatus) { s.AggregatedStatus[0].Applied = false }, false},
		"in another cluster":                {job, complete, func(s *workv1alpha2.ResourceBindingStatus) { s.AggregatedStatus[0].ClusterName = "east" }, false},
		"the cluster has left, and is back": {job, complete, func(s *workv1alpha2.ResourceBindingStatus) { s.AggregatedStatus = nil }, false},
		"no Job":                            {"Deployment apps/v1\nspec: {}", complete, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Template, o.Works = adoptiontest.Object(t, c.template), nil
			version, err := manifest.Version(o.Template)
			if err != nil {
				t.Fatal(err)
			}
			*o.Binding.Status = workv1alpha2.ResourceBindingStatus{TemplateVersion: version, AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
				{ClusterName: "west", Applied: true, Status: &runtime.RawExtension{Raw: []byte(c.status)}},
			}}
			if c.change != nil {
				c.change(o.Binding.Status)
			}
			finished := model.FinishedBefore(Decide(o).Steps[0].Work)
			if (finished != nil) != c.want || finished != nil && (string(finished.Status.Raw) != c.status || finished.Identifier.Name != "it") {
				t.Errorf("got %v", finished)
			}
		})
	}
}

// laggingCache has a binding as it was, whatever the API server has.
type laggingCache struct {
	client.Client
	binding *workv1alpha2.ResourceBinding
}

func (c laggingCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if b, is := object.(*workv1alpha2.ResourceBinding); is {
		c.binding.DeepCopyInto(b)
		return nil
	}
	return c.Client.Get(ctx, key, object, options...)
}

// The Work of a finished Job is deleted, and the cache receives the deletion before the status of the binding.
func TestFinishedJobWhileTheCacheLags(t *testing.T) {
	o := observed(t)
	o.Template, o.Works = adoptiontest.Object(t, "Job batch/v1\nspec: {}"), nil
	o.Binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "it"}
	s := newStage(t, o)
	s.Exists(t, o.Template)
	version, err := manifest.Version(o.Template)
	if err != nil {
		t.Fatal(err)
	}
	before := s.binding(t)
	status := before.DeepCopy()
	status.Status = workv1alpha2.ResourceBindingStatus{TemplateVersion: version, AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "west", Applied: true, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Complete","status":"True"}]}`)}},
	}}
	if err := s.Status().Update(t.Context(), status); err != nil {
		t.Fatal(err)
	}
	s.reconciler.client = laggingCache{s, before}
	// The status of the binding that the cache has is not written again.
	if err := s.reconcile(t); !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	var works workv1alpha1.WorkList
	if err := s.List(t.Context(), &works); err != nil || len(works.Items) != 1 {
		t.Fatalf("Works are %v, %v", works.Items, err)
	}
	if model.FinishedBefore(&works.Items[0]) == nil {
		t.Error("the new Work does not record that its Job has finished")
	}
}

// The Work of a finished Job is deleted, and so is the Work that replaces it, before that is reconciled.
func TestFinishedJobWhoseWorkIsDeletedTwice(t *testing.T) {
	for name, changed := range map[string]bool{"the same template": false, "a changed template": true} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Template, o.Works = adoptiontest.Object(t, "Job batch/v1\nspec: {}"), nil
			version, err := manifest.Version(o.Template)
			if err != nil {
				t.Fatal(err)
			}
			*o.Binding.Status = workv1alpha2.ResourceBindingStatus{TemplateVersion: version, AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
				{ClusterName: "west", Applied: true, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Complete","status":"True"}]}`)}},
			}}
			first := Decide(o)
			if model.FinishedBefore(first.Steps[0].Work) == nil {
				t.Fatal("the first Work does not record that its Job has finished")
			}
			work := first.Steps[0].Work
			if changed {
				o.Template = adoptiontest.Object(t, "Job batch/v1\nspec: {parallelism: 2}")
				o.Works = map[string]*workv1alpha1.Work{"west": work}
				first = Decide(o)
				work = first.Steps[0].Work
			}
			*o.Binding.Status, _ = AggregateStatus(o.Binding, map[string]*workv1alpha1.Work{"west": work}, first.Source, deletionTime.Add(time.Hour))
			o.Works = nil
			if again := model.FinishedBefore(Decide(o).Steps[0].Work); (again != nil) == changed {
				t.Errorf("the second Work records %v", again)
			}
		})
	}
}

// The deletion of a Work does not make its status an old one.
func TestStatusOfADeletedWork(t *testing.T) {
	o := observed(t)
	work := o.Works["west"]
	work.Generation = 3
	applied(work)
	work.DeletionTimestamp, work.Generation = &deletionTime, 4
	for generation, want := range map[int64]bool{4: true, 5: false} {
		work.Generation = generation
		status, _ := AggregateStatus(o.Binding, map[string]*workv1alpha1.Work{"west": work}, Source{}, deletionTime.Time)
		if status.AggregatedStatus[0].Applied != want {
			t.Errorf("generation %d: %v", generation, status.AggregatedStatus)
		}
	}
}

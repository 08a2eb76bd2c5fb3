package binding

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// stage is a hub with the Deployment shop/it, its binding, and the Works of the binding.
type stage struct {
	*adoptiontest.API
	reconciler *reconciler
	// version is that of the template in the cache, empty if no cache has the template.
	version string
	// reads counts the reads of the template.
	reads int
}

func newStage(t *testing.T, o Observed, objects ...client.Object) *stage {
	t.Helper()
	if o.Binding != nil {
		objects = append(objects, o.Binding.Object)
	}
	if o.Template != nil {
		objects = append(objects, o.Template)
	}
	for _, work := range o.Works {
		objects = append(objects, work)
	}
	s := &stage{API: adoptiontest.NewAPI(t, func(b *fake.ClientBuilder) {
		b.WithIndex(&workv1alpha1.Work{}, model.IndexBinding, model.BindingIndexValues)
		b.WithIndex(&workv1alpha2.ResourceBinding{}, model.IndexRequiredBy, model.RequiredByIndexValues)
		b.WithIndex(&workv1alpha2.ResourceBinding{}, model.IndexTemplate, model.TemplateIndexValues)
	}, objects...)}
	s.reconciler = &reconciler{
		client: s, reader: templateReader{s}, now: func() time.Time { return deletionTime.Time },
		version: func(context.Context, model.TemplateKey) string { return s.version },
	}
	return s
}

// templateReader counts the reads of Deployments.
type templateReader struct{ *stage }

func (r templateReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if object.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
		r.reads++
	}
	return r.API.Get(ctx, key, object, options...)
}

func (s *stage) reconcile(t *testing.T) error {
	t.Helper()
	s.Writes = nil
	_, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "it-deployment"}})
	return err
}

func (s *stage) work(t *testing.T, cluster string) *workv1alpha1.Work {
	t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: model.ExecutionNamespace(cluster), Name: workName}}
	if !s.Exists(t, work) {
		return nil
	}
	return work
}

func (s *stage) binding(t *testing.T) *workv1alpha2.ResourceBinding {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it-deployment"}}
	if !s.Exists(t, b) {
		return nil
	}
	return b
}

var workName = model.WorkName(model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "it"})

// applied is the Work of a cluster that has applied it.
func applied(work *workv1alpha1.Work) {
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation}}
}

var works = schema.GroupResource{Group: "work.karmada.io", Resource: "works"}

// The template is the largest object that adoption reads; an event of a member must not cost a read of it.
func TestTemplateIsReadOnlyAfterAChange(t *testing.T) {
	change := func(t *testing.T, s *stage, object client.Object, edit func()) {
		t.Helper()
		s.Exists(t, object)
		edit()
		if err := s.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *stage)
		reads  bool
	}{
		"nothing": {func(*testing.T, *stage) {}, false},
		"the status of a Work": {func(t *testing.T, s *stage) {
			work := s.work(t, "west")
			applied(work)
			if err := s.Status().Update(t.Context(), work); err != nil {
				t.Fatal(err)
			}
		}, false},
		"the spec of a Work": {func(t *testing.T, s *stage) {
			work := s.work(t, "west")
			change(t, s, work, func() { work.Spec.SuspendDispatching, work.Generation = ptr.To(true), 9 })
		}, true},
		"a Work that is gone": {func(t *testing.T, s *stage) {
			work := s.work(t, "west")
			change(t, s, work, func() { work.Finalizers = nil })
			if err := s.Delete(t.Context(), work); err != nil {
				t.Fatal(err)
			}
		}, true},
		"a Work that is being deleted": {func(t *testing.T, s *stage) {
			if err := s.Delete(t.Context(), s.work(t, "west")); err != nil {
				t.Fatal(err)
			}
		}, true},
		"the spec of the binding": {func(t *testing.T, s *stage) {
			b := s.binding(t)
			change(t, s, b, func() { b.Generation = 9 })
		}, true},
		"another policy": {func(t *testing.T, s *stage) {
			b := s.binding(t)
			change(t, s, b, func() { model.Claim(model.AsBinding(b), model.PolicyKey{Name: "other"}) })
		}, true},
		"the template": {func(_ *testing.T, s *stage) { s.version = "another" }, true},
		"a template that is in no cache any more": {func(_ *testing.T, s *stage) { s.version = "" }, true},
		"the operator, which has been restarted":  {func(_ *testing.T, s *stage) { s.reconciler.written = writtenWorks{} }, true},
		"another binding, which is forgotten":     {func(_ *testing.T, s *stage) { s.reconciler.written.delete("other") }, false},
		"the binding, which is created once more": {func(_ *testing.T, s *stage) { s.reconciler.written.delete("b") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			s := newStage(t, o)
			template := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it"}}
			s.Exists(t, template)
			s.version = template.ResourceVersion
			for range 2 {
				if err := s.reconcile(t); err != nil {
					t.Fatal(err)
				}
			}
			if s.reads > 1 {
				t.Fatalf("the template is read %d times while nothing changes", s.reads)
			}
			c.change(t, s)
			s.reads = 0
			if err := s.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if read := s.reads > 0; read != c.reads {
				t.Errorf("the template is read: %t", read)
			}
		})
	}
}

// A template that changes while its binding is reconciled must be read again: the cache is at another version than what was read.
func TestTemplateNewerThanItsCacheIsNotRemembered(t *testing.T) {
	s := newStage(t, observed(t))
	s.version = "1"
	for range 2 {
		if err := s.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
	if s.reads != 2 {
		t.Errorf("the template is read %d times", s.reads)
	}
}

// An invalid annotation is reported as long as it is there, also while the template is not read.
func TestInvalidAnnotationStaysReported(t *testing.T) {
	o := observed(t)
	o.Template.SetAnnotations(map[string]string{"work.karmada.io/conflict-resolution": "perhaps"})
	applied(o.Works["west"])
	s := newStage(t, o)
	s.version = "999"
	for range 2 {
		if err := s.reconcile(t); err != nil {
			t.Fatal(err)
		}
		condition := meta.FindStatusCondition(s.binding(t).Status.Conditions, workv1alpha2.ConditionFullyApplied)
		if condition == nil || !strings.Contains(condition.Message, `"perhaps": write "abort" or "overwrite"`) {
			t.Fatalf("got %v", condition)
		}
	}
	if s.reads != 1 || len(s.Writes) > 0 {
		t.Errorf("the template is read %d times, and the second time %v is written", s.reads, s.Writes)
	}
}

// A template that cannot be read must not cost its objects, whatever the reason.
func TestNothingIsWrittenWithoutItsTemplate(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, c := range map[string]struct {
		err     error
		deleted bool
		says    string
	}{
		"forbidden":              {apierrors.NewForbidden(deployments, "it", errors.New("no")), false, "get Deployment shop/it: "},
		"a timeout":              {apierrors.NewTimeoutError("late", 1), false, "get Deployment shop/it: "},
		"deleted":                {apierrors.NewNotFound(deployments, "it"), false, ""},
		"forbidden, in deletion": {apierrors.NewForbidden(deployments, "it", errors.New("no")), true, "get Deployment shop/it: "},
		"a timeout, in deletion": {apierrors.NewTimeoutError("late", 1), true, "get Deployment shop/it: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
			o.Binding.SetFinalizers([]string{model.FinalizerBinding})
			s := newStage(t, o)
			if c.deleted {
				if err := s.Delete(t.Context(), o.Binding.Object); err != nil {
					t.Fatal(err)
				}
			}
			s.On = func(verb string, object client.Object) error {
				if verb == "get" && object.GetName() == "it" {
					return c.err
				}
				return nil
			}
			err := s.reconcile(t)
			if (err != nil) != (c.says != "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			s.On = nil
			if work := s.work(t, "west"); work == nil || work.DeletionTimestamp != nil || s.work(t, "east") != nil {
				t.Errorf("%v is written", s.Writes)
			}
		})
	}
}

// A Work that the cache has not seen yet, or that an earlier binding has left, is brought to the desired one and not refused.
func TestCreateWorkThatExists(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*workv1alpha1.Work)
		gone   bool
		writes []string
	}{
		"the same":                   {func(*workv1alpha1.Work) {}, false, nil},
		"of an earlier binding":      {func(w *workv1alpha1.Work) { w.Labels[model.LabelBinding] = "earlier" }, false, []string{"update Work " + workName}},
		"of an earlier template":     {func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests[0].Raw = []byte(`{}`) }, false, []string{"update Work " + workName}},
		"labelled by another":        {func(w *workv1alpha1.Work) { w.Labels["team"] = "a" }, false, nil},
		"deleted in the same second": {func(*workv1alpha1.Work) {}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			desired := o.Works["west"].DeepCopy()
			c.change(o.Works["west"])
			s := newStage(t, o)
			s.On = func(verb string, object client.Object) error {
				if c.gone && verb == "get" {
					return apierrors.NewNotFound(works, object.GetName())
				}
				return nil
			}
			work, err := s.reconciler.createWork(t.Context(), o.Binding, desired)
			if c.gone {
				if !apierrors.IsNotFound(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || !slices.Equal(s.Writes, c.writes) {
				t.Fatalf("%v, %v", s.Writes, err)
			}
			if got := s.work(t, "west"); got.Labels[model.LabelBinding] != "b" || !equalSpecs(got.Spec, desired.Spec) || work.ResourceVersion != got.ResourceVersion {
				t.Errorf("got %v", got)
			}
			if team := s.work(t, "west").Labels["team"]; name == "labelled by another" && team != "a" {
				t.Error("the label of another client is removed")
			}
		})
	}
}

// One cluster whose Work cannot be written does not hold up the others.
func TestWorksOfOtherClustersAreWrittenAfterAFailure(t *testing.T) {
	o := observed(t)
	o.Binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "north"}, {Name: "west"}}
	s := newStage(t, o)
	s.On = func(verb string, object client.Object) error {
		if verb == "create" && object.GetNamespace() == model.ExecutionNamespace("east") {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, object.GetNamespace())
		}
		return nil
	}
	if err := s.reconcile(t); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if s.work(t, "north") == nil || s.work(t, "east") != nil {
		t.Errorf("got %v", s.Writes)
	}
	s.On = nil
	if err := s.reconcile(t); err != nil || s.work(t, "east") == nil {
		t.Errorf("the next try: %v, %v", s.Writes, err)
	}
}

// A Work that the hub refuses for its size is reported and not tried again: the error would be the same.
func TestWorkTooLargeIsReported(t *testing.T) {
	for name, refusal := range map[string]error{
		"by the API server": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"by its store":      apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Works = nil
			s := newStage(t, o)
			s.On = func(verb string, _ client.Object) error {
				if verb == "create" {
					return refusal
				}
				return nil
			}
			if err := s.reconcile(t); err != nil {
				t.Fatal(err)
			}
			condition := meta.FindStatusCondition(s.binding(t).Status.Conditions, workv1alpha2.ConditionFullyApplied)
			if condition == nil || condition.Status != metav1.ConditionFalse || !strings.HasSuffix(condition.Message, ": split the resource") {
				t.Errorf("got %v", condition)
			}
		})
	}
}

// Each item of the status says what its cluster said: the health and the status of the object, or why the object is not applied.
func TestItemsOfTheStatus(t *testing.T) {
	b := observed(t).Binding
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "north"}, {Name: "west"}}
	work := func(is metav1.ConditionStatus, statuses ...workv1alpha1.ManifestStatus) *workv1alpha1.Work {
		return &workv1alpha1.Work{Status: workv1alpha1.WorkStatus{
			Conditions:       []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: is, Reason: "AppliedFailed", Message: "denied"}},
			ManifestStatuses: statuses,
		}}
	}
	reported := workv1alpha1.ManifestStatus{Health: "Healthy", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)}}
	status, _ := AggregateStatus(b, map[string]*workv1alpha1.Work{
		"east": work(metav1.ConditionTrue, reported), "north": work(metav1.ConditionFalse, reported), "other": work(metav1.ConditionTrue),
	}, Source{}, deletionTime.Time)
	want := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy, Status: reported.Status},
		{ClusterName: "north", Reason: "AppliedFailed", AppliedMessage: "denied", Health: workv1alpha2.ResourceHealthy, Status: reported.Status},
		{ClusterName: "west", Reason: "Applying", AppliedMessage: "nothing has been written to cluster west yet", Health: workv1alpha2.ResourceUnknown},
	}
	for i := range want {
		if got := status.AggregatedStatus[i]; got.Applied != want[i].Applied || got.ClusterName != want[i].ClusterName || got.Reason != want[i].Reason ||
			got.AppliedMessage != want[i].AppliedMessage || got.Health != want[i].Health || got.Status != want[i].Status {
			t.Errorf("got %+v, want %+v", got, want[i])
		}
	}
}

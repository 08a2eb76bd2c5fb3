package binding

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// The finalizer of a binding goes last; what becomes of the objects is on a Work before the Work is deleted.
func TestDeletionOfABinding(t *testing.T) {
	notFound, conflict := apierrors.NewNotFound(works, "it"), apierrors.NewConflict(works, "it", errors.New("changed"))
	patch, remove := "patch Work "+workName, "delete Work "+workName
	// required is a Work whose object stays although its template is gone, which the Work does not say yet.
	required := func(o *Observed) {
		o.Template, o.Works["west"].Annotations[model.AnnotationClaim] = nil, model.PolicyKey{}.String()
	}
	for name, c := range map[string]struct {
		change  func(*Observed)
		fails   map[string]error
		writes  []string
		failure func(error) bool
	}{
		"without Works":              {change: func(o *Observed) { o.Works = nil }, writes: []string{"patch ResourceBinding it-deployment"}},
		"by hand, so the Works stay": {writes: []string{patch, "patch ResourceBinding it-deployment"}},
		"one of Karmada for a custom kind, by hand": {change: func(o *Observed) {
			o.Template.SetAPIVersion("example.com/v1")
			o.Binding.Spec.Resource.APIVersion = "example.com/v1"
		}, writes: []string{patch, "patch ResourceBinding it-deployment"}},
		"a Work that says what becomes of its object": {change: required, writes: []string{patch, remove}},
		"a Work with nothing to say":                  {change: func(o *Observed) { o.Template = nil }, writes: []string{remove}},
		"a Work that is being deleted already": {change: func(o *Observed) {
			o.Template, o.Works["west"].DeletionTimestamp = nil, &deletionTime
		}},
		"a Work that is gone before the patch":      {change: required, fails: map[string]error{"patch": notFound, "delete": notFound}},
		"a Work that is gone before the deletion":   {change: required, fails: map[string]error{"delete": notFound}, writes: []string{patch}},
		"a patch that fails, so nothing is deleted": {change: required, fails: map[string]error{"patch": conflict}, failure: apierrors.IsConflict},
		"a deletion that fails":                     {change: required, fails: map[string]error{"delete": conflict}, writes: []string{patch}, failure: apierrors.IsConflict},
		"a binding that is gone before its patch":   {change: func(o *Observed) { o.Works = nil }, fails: map[string]error{"patch": notFound}},
		"a template that is being deleted as well": {change: func(o *Observed) {
			o.Template.SetFinalizers([]string{"foregroundDeletion"})
			o.Template.SetDeletionTimestamp(&deletionTime)
		}, writes: []string{remove}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Binding.SetFinalizers([]string{model.FinalizerBinding})
			o.Binding.SetDeletionTimestamp(&deletionTime)
			if c.change != nil {
				c.change(&o)
			}
			s := newStage(t, o)
			s.On = func(verb string, _ client.Object) error { return c.fails[verb] }
			err := s.reconcile(t)
			if failed := c.failure != nil; failed != (err != nil) || failed && !c.failure(err) {
				t.Errorf("got %v", err)
			}
			if !slices.Equal(s.Writes, c.writes) {
				t.Errorf("got %v, want %v", s.Writes, c.writes)
			}
			s.On = nil
			if work := s.work(t, "west"); work != nil && slices.Contains(c.writes, patch) &&
				!ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) && work.Annotations[model.AnnotationKeep] != "true" {
				t.Errorf("the Work has %v, and annotations %v", work.Spec, work.Annotations)
			}
			if len(o.Works) == 0 && len(c.fails) == 0 && s.binding(t) != nil {
				t.Error("the binding keeps its finalizer")
			}
		})
	}
}

// Works whose binding is gone wait for the next one, or go with their template.
func TestUnboundWorks(t *testing.T) {
	patch, remove := "patch Work "+workName, "delete Work "+workName
	ofCustomKind := func(o *Observed) {
		o.Template.SetAPIVersion("example.com/v1")
		o.Works["west"].Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"it"}}`)
	}
	for name, c := range map[string]struct {
		change func(*Observed)
		writes []string
	}{
		"the template exists":  {func(*Observed) {}, nil},
		"the template is gone": {func(o *Observed) { o.Template = nil }, []string{remove}},
		"the template is being deleted": {func(o *Observed) {
			o.Template.SetFinalizers([]string{"foregroundDeletion"})
			o.Template.SetDeletionTimestamp(&deletionTime)
		}, []string{remove}},
		"the object is preserved": {func(o *Observed) {
			o.Template, o.Works["west"].Spec.PreserveResourcesOnDeletion = nil, ptr.To(true)
		}, []string{remove}},
		"the object was required only": {func(o *Observed) {
			o.Template, o.Works["west"].Annotations[model.AnnotationClaim] = nil, model.PolicyKey{}.String()
		}, []string{patch, remove}},
		"the template has its binding elsewhere": {func(o *Observed) {
			o.Template.SetName("other")
			o.Works["west"].Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"other"}}`)
		}, []string{patch, remove}},
		"of Karmada, of a custom kind": {ofCustomKind, nil},
		"of Karmada, of a custom kind that has another binding": {func(o *Observed) {
			ofCustomKind(o)
			key := model.KeyOf(o.Template)
			o.Binding = model.NewBinding(key.Binding())
			o.Binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "example.com/v1", Kind: "Deployment", Namespace: "shop", Name: "it"}
		}, []string{patch, remove}},
		"no Works": {func(o *Observed) { o.Template, o.Works = nil, nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Binding = nil
			c.change(&o)
			s := newStage(t, o)
			if err := s.reconcile(t); err != nil || !slices.Equal(s.Writes, c.writes) {
				t.Errorf("got %v, %v", s.Writes, err)
			}
		})
	}
}

// A binding may be created again between two looks: it has the Works then, which know that a Job has finished.
func TestWorksOfABindingCreatedAgainMeanwhile(t *testing.T) {
	o := observed(t)
	s := newStage(t, o)
	gone := o
	gone.Binding = nil
	if err := s.reconciler.reconcileUnbound(t.Context(), client.ObjectKeyFromObject(o.Binding.Object), gone); err != nil || len(s.Writes) > 0 {
		t.Errorf("got %v, %v", s.Writes, err)
	}
}

// A binding that is created again has the Works of the earlier one: none of them is written to its cluster again.
func TestWorksOfAnEarlierBinding(t *testing.T) {
	o := observed(t)
	o.Works["west"].Labels[model.LabelBinding], o.Works["west"].Annotations[model.AnnotationKeep] = "earlier", "true"
	applied(o.Works["west"])
	s := newStage(t, o)
	if err := s.reconcile(t); err != nil {
		t.Fatal(err)
	}
	work := s.work(t, "west")
	if work.Labels[model.LabelBinding] != "b" || work.Annotations[model.AnnotationKeep] != "" || len(work.Status.Conditions) == 0 {
		t.Errorf("got %v", work)
	}
}

// A binding whose policy is aborted stays until the originals of its dependencies are restored.
func TestBindingAwaitsItsDependencies(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b, dependency *model.Binding)
		gone   bool
	}{
		"aborted":                      {func(_, _ *model.Binding) {}, false},
		"the binding is deleted":       {func(b, _ *model.Binding) { delete(b.GetAnnotations(), model.AnnotationRestore) }, true},
		"the dependency is released":   {func(_, d *model.Binding) { delete(d.GetAnnotations(), model.AnnotationRestore) }, true},
		"the dependency stays":         {func(_, d *model.Binding) { d.SetDeletionTimestamp(nil) }, true},
		"the dependency is of another": {func(_, d *model.Binding) { d.Spec.RequiredBy[0].Name = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Works = nil
			dependency := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "settings-configmap"})
			dependency.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "it-deployment"}}
			for _, b := range []*model.Binding{o.Binding, dependency} {
				b.SetFinalizers([]string{model.FinalizerBinding})
				b.SetDeletionTimestamp(&deletionTime)
				b.SetAnnotations(model.MergeKeys(b.GetAnnotations(), nil, map[string]string{model.AnnotationRestore: "true"}))
			}
			c.change(o.Binding, dependency)
			s := newStage(t, o, dependency.Object)
			if err := s.reconcile(t); err != nil || (s.binding(t) == nil) != c.gone {
				t.Errorf("%v, %v", s.Writes, err)
			}
		})
	}
}

// The cache may still have a binding that is gone, when its template has the next one already.
func TestFinalizerOfTheNextBinding(t *testing.T) {
	o := observed(t)
	o.Binding.SetFinalizers([]string{model.FinalizerBinding})
	s := newStage(t, o)
	cached := s.binding(t)
	cached.DeletionTimestamp = &deletionTime
	next := observed(t).Binding
	next.SetFinalizers([]string{model.FinalizerBinding})
	next.SetUID("next")
	if err := s.Delete(t.Context(), o.Binding.Object); err != nil {
		t.Fatal(err)
	}
	if err := s.reconciler.removeFinalizer(t.Context(), model.AsBinding(s.binding(t))); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), next.Object); err != nil {
		t.Fatal(err)
	}
	err := s.reconciler.reconcileDeleted(t.Context(), Observed{Binding: model.AsBinding(cached), Template: o.Template, Works: o.Works})
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if !slices.Contains(s.binding(t).Finalizers, model.FinalizerBinding) {
		t.Error("the next binding has no finalizer")
	}
}

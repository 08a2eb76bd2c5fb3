package work

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/member"
)

// watched is the object of a member in its last event, nil if there is none.
type watched struct{ object *unstructured.Unstructured }

func (w watched) WatchedVersion(_ context.Context, kind schema.GroupVersionKind, key client.ObjectKey) string {
	if w.object == nil || w.object.GroupVersionKind() != kind || client.ObjectKeyFromObject(w.object) != key {
		return ""
	}
	return member.VersionOf(w.object)
}

// A Work is compared again unless it and its object are those of the last comparison.
func TestComparisons(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(work *workv1alpha1.Work, object *unstructured.Unstructured)
		unseen  bool
		forget  bool
		current bool
	}{
		"nothing has changed":            {func(*workv1alpha1.Work, *unstructured.Unstructured) {}, false, false, true},
		"the Work has changed":           {func(w *workv1alpha1.Work, _ *unstructured.Unstructured) { w.ResourceVersion = "6" }, false, false, false},
		"another Work of that name":      {func(w *workv1alpha1.Work, _ *unstructured.Unstructured) { w.UID = "v" }, false, false, false},
		"the object has changed":         {func(_ *workv1alpha1.Work, o *unstructured.Unstructured) { o.SetResourceVersion("8") }, false, false, false},
		"the object of another cluster":  {func(_ *workv1alpha1.Work, o *unstructured.Unstructured) { o.SetUID("p") }, false, false, false},
		"there was no event of the kind": {func(*workv1alpha1.Work, *unstructured.Unstructured) {}, true, false, false},
		"the Work was deleted":           {func(*workv1alpha1.Work, *unstructured.Unstructured) {}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			work := &workv1alpha1.Work{}
			work.UID, work.ResourceVersion = "u", "5"
			object := adoptiontest.Object(t, "ConfigMap v1 shop/it")
			object.SetUID("o")
			object.SetResourceVersion("7")
			var all comparisons
			all.record(work, object)
			c.change(work, object)
			if c.forget {
				all.forget(work.UID)
			}
			objects := watched{object}
			if c.unseen {
				objects.object = nil
			}
			if got := all.isCurrent(t.Context(), work, objects); got != c.current {
				t.Errorf("current: %t", got)
			}
		})
	}
}

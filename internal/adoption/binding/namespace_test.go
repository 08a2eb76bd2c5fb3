package binding

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// With its namespace a binding may be deleted before its template: it is not created again, so its Works do not wait for another
// one.
func TestBindingDeletedWithItsNamespace(t *testing.T) {
	for name, deleted := range map[string]bool{"by hand": false, "with its namespace": true} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Binding.SetFinalizers([]string{model.FinalizerBinding})
			o.Binding.SetDeletionTimestamp(&deletionTime)
			s := newStage(t, o)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Finalizers: []string{"kubernetes"}}}
			if err := s.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			if deleted {
				if err := s.Delete(t.Context(), namespace); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(s.Writes, "delete Work "+workName) != deleted {
				t.Errorf("written: %v", s.Writes)
			}
		})
	}
}

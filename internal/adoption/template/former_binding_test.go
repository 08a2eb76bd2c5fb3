package template

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A binding that somebody has deleted goes where its Works are, even if a new one would not: nothing moves.
func TestBindingIsCreatedAgainFromItsWorks(t *testing.T) {
	for claim, want := range map[string][]string{"shop/p": {"tainted", "west"}, model.PolicyKey{}.String(): {"west"}} {
		t.Run("placed by "+claim, func(t *testing.T) {
			h := newHub(t)
			for _, object := range []client.Object{
				&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "tainted"}, Spec: clusterv1alpha1.ClusterSpec{
					Taints: []corev1.Taint{{Key: "drain", Effect: corev1.TaintEffectNoSchedule}},
				}},
				&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: model.ExecutionNamespace("tainted"), Name: "it", Annotations: map[string]string{
					model.AnnotationBinding: model.BindingPath(binding), model.AnnotationClaim: claim,
				}}},
			} {
				if err := h.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := h.reconciler.Reconcile(t.Context(), cartKey); err != nil {
				t.Fatal(err)
			}
			b, err := model.GetBinding(t.Context(), h, binding)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range b.Spec.Clusters {
				got = append(got, c.Name)
			}
			if !slices.Equal(got, want) || !slices.Contains(b.GetFinalizers(), model.FinalizerBinding) {
				t.Errorf("goes to %v, with finalizers %v", got, b.GetFinalizers())
			}
		})
	}
}

// A template that is deleted after its binding may have left Works.
func TestWorksAreLookedAtWhenTheTemplateIsGone(t *testing.T) {
	h := newHub(t)
	key := cartKey
	key.Name = "gone"
	if _, err := h.reconciler.Reconcile(t.Context(), key); err != nil || !slices.Equal(h.enqueued, key.Bindings()) {
		t.Errorf("%v, %v", h.enqueued, err)
	}
}

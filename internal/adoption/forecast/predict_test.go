package forecast

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/binding"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestPredictDeletion(t *testing.T) {
	cart := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "cart", "namespace": "shop"},
		"spec": map[string]any{"replicas": int64(3)},
	}}
	raw, err := cart.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		// said by the policy now, and when the Work was written
		now, then, leaving, claimed bool
		action                      passage.Action
		deleted                     bool
		why                         string
	}{
		"the object is deleted":                    {action: model.ActionDelete, deleted: true, why: "the placement no longer selects cluster west"},
		"the policy lets it stay":                  {now: true, then: true, action: model.ActionOrphan, why: "the placement no longer selects cluster west"},
		"the policy lets it stay from now on":      {now: true, action: model.ActionOrphan, why: "the placement no longer selects cluster west"},
		"the policy no longer lets it stay":        {then: true, action: model.ActionDelete, deleted: true, why: "the placement no longer selects cluster west"},
		"another policy took it there":             {claimed: true, action: model.ActionOrphan, why: "the placement no longer selects cluster west"},
		"a cluster that leaves keeps what it runs": {leaving: true, action: model.ActionOrphan, why: "cluster west is leaving the hub"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: cart.GetAPIVersion(), Kind: cart.GetKind(), Namespace: cart.GetNamespace(), Name: cart.GetName()}
			b.Spec.PreserveResourcesOnDeletion = ptr.To(tc.now)
			work := &workv1alpha1.Work{Spec: workv1alpha1.WorkSpec{PreserveResourcesOnDeletion: ptr.To(tc.then)}}
			work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
			work.Annotations = map[string]string{model.AnnotationClaim: model.ClaimOf(b).String()}
			if tc.claimed {
				work.Annotations[model.AnnotationClaim] = "shop/another"
			}
			west := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
			if tc.leaving {
				west.DeletionTimestamp = ptr.To(metav1.Now())
			}
			work.Namespace = model.ExecutionNamespace("west")
			d := binding.Decide(binding.Observed{Binding: b, Template: cart, Works: map[string]*workv1alpha1.Work{"west": work}})
			if len(d.Steps) != 1 || d.Steps[0].Action != model.ActionDelete {
				t.Fatalf("steps: %v", d.Steps)
			}
			got := predictDeletion(cart, d.Steps[0], west)
			if got.Action != tc.action || got.Deleted != tc.deleted || got.Pods != 3 || got.Reason.Message != tc.why {
				t.Errorf("%s, %d pods, deleted: %t, because %s", got.Action, got.Pods, got.Deleted, got.Reason.Message)
			}
		})
	}
}

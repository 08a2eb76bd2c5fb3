package forecast

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
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

// What is deleted later is planned as deleted, unless the template cannot be applied in a cluster that it goes to instead.
func TestPredictLaterDeletion(t *testing.T) {
	cart := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "cart", "namespace": "shop"}}}
	for name, c := range map[string]struct {
		suspended, leaving bool
		blocked            string
		action             passage.Action
		why                string
	}{
		"replaced":                     {action: model.ActionDelete, why: "the placement no longer selects cluster west"},
		"not replaced":                 {blocked: "east", action: model.ActionKeep, why: "the placement no longer selects cluster west, and the object there stays until Deployment shop/cart is applied in cluster east"},
		"another cluster has failed":   {blocked: "north", action: model.ActionDelete, why: "the placement no longer selects cluster west"},
		"suspended":                    {suspended: true, blocked: "east", action: model.ActionDelete, why: "the placement no longer selects cluster west"},
		"not replaced, and it departs": {leaving: true, blocked: "east", action: model.ActionOrphan, why: "cluster west is leaving the hub"},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
			b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: &c.suspended}}
			west := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
			if c.leaving {
				west.DeletionTimestamp = ptr.To(metav1.Now())
			}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: model.ExecutionNamespace("west"), Annotations: map[string]string{model.AnnotationClaim: model.ClaimOf(b).String()}}}
			d := binding.Decide(binding.Observed{Binding: b, Template: cart, Works: map[string]*workv1alpha1.Work{"west": work}})
			got := laterDeletion{cart, d.Steps[1]}.predict(west, map[passage.Object]bool{objectIn(cart, c.blocked): true})
			if got.Action != c.action || got.Reason.Message != c.why || got.Object.Cluster != "west" {
				t.Errorf("%s in %s: %s", got.Action, got.Object, got.Reason.Message)
			}
		})
	}
}

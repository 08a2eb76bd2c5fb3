package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestSuspendedDispatching(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := policy("v1", "ConfigMap", suspend)
	s.create(t, s.hub, configMap("it"), p)
	says := "nothing is written to cluster member1 while the policy suspends dispatching"
	s.trouble(t, member1, "it-configmap", "everything", "DispatchingSuspended", says)
	now := configMap("it")
	if err := s.members[member1].Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "it"}, now); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
	s.changePolicy(t, p, func(p *policyv1alpha1.PropagationSpec) { p.Suspension = nil })
	s.says(t, "it-configmap", applied)
	s.read(t, s.members[member1], now)
}

// Members get as many replicas as their weights say, and new shares when those change.
func TestDividedReplicas(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	weights := func(first, second int64) func(*policyv1alpha1.PropagationSpec) {
		weight := func(name string, w int64) policyv1alpha1.StaticClusterWeight {
			return policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}, Weight: w}
		}
		return func(p *policyv1alpha1.PropagationSpec) {
			p.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaScheduling{
				ReplicaSchedulingType: policyv1alpha1.ReplicasDivided, ReplicaDivisionPreference: "Weighted",
				WeightPreference: &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{weight(member1, first), weight(member2, second)}},
			}
		}
	}
	template := deployment("it")
	template.Spec.Replicas = ptr.To[int32](4)
	p := policy("apps/v1", "Deployment", everywhere, weights(1, 3))
	s.create(t, s.hub, template, p)
	s.divided(t, 1, 3)
	t.Run("by other weights", func(t *testing.T) {
		s.changePolicy(t, p, weights(1, 1))
		s.divided(t, 2, 2)
	})
	t.Run("more of them", func(t *testing.T) {
		s.change(t, s.hub, template, func() { template.Spec.Replicas = ptr.To[int32](6) })
		s.divided(t, 3, 3)
	})
}

func (s *stage) divided(t *testing.T, first, second int32) {
	t.Helper()
	for member, want := range map[string]int32{member1: first, member2: second} {
		now := deployment("it")
		s.until(t, s.members[member], now, func() error {
			if got := *now.Spec.Replicas; got != want {
				return fmt.Errorf("%s has %d replicas, and not %d", member, got, want)
			}
			return nil
		})
	}
	s.says(t, "it-deployment", applied, "applied in all 2 clusters")
}

// A namespace that the member lacks is made; one that it has is no conflict.
func TestNamespaceMissingInMember(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	s := &stage{w, w.hub.Namespace(t)}
	if err := s.members[member2].Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap", everywhere))
	s.says(t, "it-configmap", applied, "applied in all 2 clusters")
	for _, m := range s.members {
		namespace := &corev1.Namespace{}
		if err := m.Get(t.Context(), client.ObjectKey{Name: s.namespace}, namespace); err != nil {
			t.Fatal(err)
		}
		if err := isClean(namespace); err != nil {
			t.Errorf("nobody manages the namespace, but %v", err)
		}
	}
}

// What is in no namespace is taken by policies of the cluster.
func TestClusterScopedResource(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name := cluster.Name(t)
	template := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "x"}}}
	all := &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Namespace", Name: name}}, Placement: to(member1, member2),
			DeletionProtection: policyv1alpha1.DeletionProtectionDisabled,
		},
	}
	for _, o := range []client.Object{template, all} {
		if err := w.hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, func(ctx context.Context) error {
		var b workv1alpha2.ClusterResourceBinding
		if err := w.hub.Get(ctx, client.ObjectKey{Name: name + "-namespace"}, &b); err != nil {
			return err
		}
		return saying(b.Status.Conditions, workv1alpha2.ConditionFullyApplied, b.Generation, applied, []string{"applied in all 2 clusters"})
	})
	wait.Until(t, func(ctx context.Context) error {
		if err := w.hub.Get(ctx, client.ObjectKeyFromObject(all), all); err != nil {
			return err
		}
		if all.Status.Matched != 1 || all.Status.Applied != 1 {
			return fmt.Errorf("the policy counts %+v", all.Status)
		}
		return nil
	})
	for _, m := range w.members {
		now := &corev1.Namespace{}
		if err := m.Get(t.Context(), client.ObjectKey{Name: name}, now); err != nil {
			t.Fatal(err)
		}
		if now.Labels["team"] != "x" || !isMarked(now) {
			t.Errorf("labels %v", now.Labels)
		}
	}
	if err := w.hub.Delete(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	for _, m := range w.members {
		wait.Until(t, func(ctx context.Context) error {
			if err := m.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is still there"), err)
			}
			return nil
		})
	}
}

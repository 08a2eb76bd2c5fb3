package adoption_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// gadget is a resource of the test's own, so that the pods of others take no room.
func (s *stage) gadget() corev1.ResourceName {
	return corev1.ResourceName("example.com/" + s.namespace)
}

// Replicas are divided by the room that members report for the requests of the template, and stay when that changes.
func TestAvailableReplicas(t *testing.T) {
	s := newStage(t)
	s.offer(t, member1, 1)
	s.offer(t, member2, 3)
	template := deployment("it")
	template.Spec.Replicas = ptr.To[int32](4)
	template.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{s.gadget(): resource.MustParse("1")}, Limits: corev1.ResourceList{s.gadget(): resource.MustParse("1")},
	}
	p := policy("apps/v1", "Deployment", everywhere, func(p *policyv1alpha1.PropagationSpec) {
		p.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaScheduling{
			ReplicaSchedulingType: policyv1alpha1.ReplicasDivided, ReplicaDivisionPreference: policyv1alpha1.DivideWeighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.WeightByAvailableReplicas},
		}
	})
	s.create(t, s.hub, template, p)
	s.divided(t, 1, 3)
	s.reports(t, member1, 1)
	s.reports(t, member2, 3)

	t.Run("no room for more", func(t *testing.T) {
		s.change(t, s.hub, template, func() { template.Spec.Replicas = ptr.To[int32](6) })
		s.says(t, "it-deployment", "NoClusterFit", "the clusters have no room for 2 of 6 replicas", "Replicas that are placed stay where they are")
	})
	t.Run("room appears in one member", func(t *testing.T) {
		s.offer(t, member1, 4)
		s.divided(t, 3, 3)
	})
	t.Run("a member where nodes may not be read", func(t *testing.T) {
		role := &rbacv1.ClusterRole{}
		admin := s.members[member2]
		if err := admin.Get(t.Context(), client.ObjectKey{Name: "fairlead-member-common"}, role); err != nil {
			t.Fatal(err)
		}
		for i, r := range role.Rules {
			if strings.Join(r.Resources, " ") == "nodes pods" {
				role.Rules[i].Resources = []string{"pods"}
			}
		}
		if err := admin.Update(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		s.resources(t, member2, metav1.ConditionFalse, "`fairlead join member2 --member-kubeconfig FILE` grants that")
		s.divided(t, 3, 3)
		s.change(t, s.hub, template, func() { template.Spec.Replicas = ptr.To[int32](7) })
		s.says(t, "it-deployment", "NoClusterFit", "clusters have not reported what room they have for pods: "+member2)
		s.join(t, member2)
		s.resources(t, member2, metav1.ConditionTrue, "is reported")
		s.divided(t, 4, 3)
	})
}

// offer has the node of a member offer some gadgets.
func (s *stage) offer(t testing.TB, member string, gadgets int64) {
	t.Helper()
	var nodes corev1.NodeList
	if err := s.members[member].List(t.Context(), &nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatal(err, "no nodes")
	}
	node, before := &nodes.Items[0], nodes.Items[0].DeepCopy()
	for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		list[s.gadget()] = *resource.NewQuantity(gadgets, resource.DecimalSI)
	}
	if err := s.members[member].Status().Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// reports waits until the hub knows how many gadgets the pods of a member use.
func (s *stage) reports(t testing.TB, member string, gadgets int64) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var c clusterv1alpha1.Cluster
		if err := s.hub.Get(ctx, client.ObjectKey{Name: member}, &c); err != nil {
			return err
		}
		if sum := c.Status.ResourceSummary; sum == nil || sum.Allocated.Name(s.gadget(), resource.DecimalSI).Value() != gadgets {
			return fmt.Errorf("reported %+v", sum)
		}
		return nil
	})
}

// resources waits until the hub says this of what it knows of the nodes and pods of a member.
func (s *stage) resources(t testing.TB, member string, status metav1.ConditionStatus, says string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var c clusterv1alpha1.Cluster
		if err := s.hub.Get(ctx, client.ObjectKey{Name: member}, &c); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionResourcesReported)
		if condition == nil || condition.Status != status || !strings.Contains(condition.Message, says) || (c.Status.ResourceSummary != nil) != (status == metav1.ConditionTrue) {
			return fmt.Errorf("%+v, %+v", condition, c.Status.ResourceSummary)
		}
		return nil
	})
}

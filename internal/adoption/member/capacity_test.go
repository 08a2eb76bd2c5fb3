package member

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/capacity"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

func readyNode(name, cpu string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

// The room of a cluster is reported while a policy needs it, at a bounded rate, and written only if it has changed.
func TestReportCapacity(t *testing.T) {
	o := newOperator(t, nil)
	now := issued
	o.now = func() time.Time { return now }
	room := func() string {
		t.Helper()
		o.reconcile(t)
		if sum := o.cluster(t).Status.ResourceSummary; sum != nil {
			cpu := sum.Allocatable[corev1.ResourceCPU]
			return cpu.String()
		}
		return ""
	}
	o.nodes = []corev1.Node{readyNode("a", "4")}
	if got := room(); got != "" || o.roomRead != 0 {
		t.Fatalf("reported though no policy needs it: %s, read %d times", got, o.roomRead)
	}
	o.usesRoom = true
	if got := room(); got != "4" {
		t.Fatalf("got %s", got)
	}
	o.nodes, o.hub.Writes = append(o.nodes, readyNode("b", "2")), nil
	if got := room(); got != "4" || o.roomRead != 1 || len(o.hub.Writes) > 0 {
		t.Errorf("at once, got %s, read %d times, %v", got, o.roomRead, o.hub.Writes)
	}
	now = now.Add(capacityInterval)
	if got := room(); got != "6" {
		t.Errorf("after a while, got %s", got)
	}
	o.hub.Writes, now = nil, now.Add(capacityInterval)
	if got := room(); got != "6" || o.roomRead != 3 || len(o.hub.Writes) > 0 {
		t.Errorf("unchanged, got %s, read %d times, %v", got, o.roomRead, o.hub.Writes)
	}
	o.usesRoom = false
	if got := room(); got != "" || meta.FindStatusCondition(o.cluster(t).Status.Conditions, clusterv1alpha1.ConditionResourcesReported) != nil {
		t.Errorf("kept though no policy needs it: %s", got)
	}
}

// Where the hub may not read nodes and pods, the Cluster says how to grant that, and an outdated report does not stay.
func TestCapacityForbidden(t *testing.T) {
	o := newOperator(t, nil)
	o.usesRoom, o.nodes = true, []corev1.Node{readyNode("a", "4")}
	o.reconcile(t)
	o.restart(t)
	o.roomErr = apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no rule"))
	o.reconcile(t)
	c := o.cluster(t)
	condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionResourcesReported)
	if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != string(model.ReasonForbidden) || c.Status.ResourceSummary != nil {
		t.Fatalf("%+v, %v", condition, c.Status.ResourceSummary)
	}
	for _, remedy := range []string{"`fairlead join west --member-kubeconfig FILE` grants that", `{apiGroups: [""], resources: [nodes, pods], verbs: [list, watch]}`, model.LabelMemberRole} {
		if !strings.Contains(condition.Message, remedy) {
			t.Errorf("%q does not name %s", condition.Message, remedy)
		}
	}
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady) {
		t.Error("the cluster is not ready for other policies")
	}
	o.roomErr = nil
	o.reconcile(t)
	if c := o.cluster(t); !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionResourcesReported) || c.Status.ResourceSummary == nil {
		t.Errorf("once it is granted: %+v", c.Status)
	}
}

// What the cache keeps of nodes and pods has the same room as they have.
func TestKeptCapacity(t *testing.T) {
	node := readyNode("a", "4")
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"cart"}}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", Labels: map[string]string{"app": "cart"}}, Spec: corev1.PodSpec{
		NodeName: "a", InitContainers: []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}}}},
		Containers: []corev1.Container{{Name: "c", Image: "cart", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}},
	}}
	keptNode, err := keepAllocatable(node.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	keptPod, err := keepRequests(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	_, whole := capacity.Summarize([]corev1.Node{node}, []corev1.Pod{pod})
	_, kept := capacity.Summarize([]corev1.Node{*keptNode.(*corev1.Node)}, []corev1.Pod{*keptPod.(*corev1.Pod)})
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	for _, sum := range []*clusterv1alpha1.ResourceSummary{whole, kept} {
		sum.Allocatable[corev1.ResourcePods] = resource.MustParse("100")
	}
	if a, b := capacity.Replicas(whole, one), capacity.Replicas(kept, one); a != 4 || b != 4 {
		t.Errorf("room for %d, and for %d", a, b)
	}
	if p := keptPod.(*corev1.Pod); p.Labels != nil || p.Spec.Containers[0].Image != "" || keptNode.(*corev1.Node).Status.Images != nil {
		t.Errorf("kept too much: %+v", p)
	}
}

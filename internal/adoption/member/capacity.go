package member

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/capacity"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// capacityInterval is how often the room of a cluster is reported at most.
const capacityInterval = 30 * time.Second

// capacityState is what a client has of the nodes and the pods of a cluster.
type capacityState struct {
	cache    cache.Cache
	stop     context.CancelFunc
	reported time.Time
}

// reportCapacity reports the room of a cluster that can be reached in its status, as long as a policy divides replicas by it.
func (h *reconciler) reportCapacity(ctx context.Context, c *clusterv1alpha1.Cluster, status *clusterv1alpha1.ClusterStatus) error {
	used, err := h.usesCapacity(ctx)
	if err != nil {
		return err
	}
	m := h.members.Get(c.Name)
	if !used {
		// What is not kept up to date must not decide where replicas go.
		status.NodeSummary, status.ResourceSummary = nil, nil
		meta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionResourcesReported)
		if m != nil {
			m.stopCapacity()
		}
		return nil
	}
	if m == nil || !m.capacityDue(h.now(), meta.IsStatusConditionTrue(status.Conditions, clusterv1alpha1.ConditionResourcesReported)) {
		return nil
	}
	nodes, resources, err := h.readCapacity(ctx, m)
	if err == nil && resources == nil {
		// The first list takes a while.
		return nil
	}
	status.NodeSummary, status.ResourceSummary = nodes, resources
	is, reason := capacityCondition(c.Name, nodes, err)
	model.SetCondition(&status.Conditions, clusterv1alpha1.ConditionResourcesReported, is, reason, c.Generation, h.now())
	return nil
}

func capacityCondition(cluster string, nodes *clusterv1alpha1.NodeSummary, err error) (metav1.ConditionStatus, passage.Reason) {
	switch {
	case apierrors.IsForbidden(err):
		return metav1.ConditionFalse, passage.Because(model.ReasonForbidden, "the hub may not read the nodes and pods of cluster %s: %v: `fairlead join %s --member-kubeconfig FILE` grants that; "+
			`or add the rule {apiGroups: [""], resources: [nodes, pods], verbs: [list, watch]} to a ClusterRole of the cluster with the label %s: "true"`,
			cluster, err, cluster, model.LabelMemberRole)
	case err != nil:
		return metav1.ConditionFalse, passage.Because(model.ReasonNotReadable, "the nodes and pods of cluster %s cannot be read: %v", cluster, err)
	}
	return metav1.ConditionTrue, passage.Because(model.ReasonReported, "the room of %d ready nodes is reported", nodes.ReadyNum)
}

// capacityDue tells whether the room of the cluster is to be reported: the first time, and then at a bounded rate.
func (m *Client) capacityDue(now time.Time, reported bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if reported && now.Sub(m.capacity.reported) < capacityInterval {
		return false
	}
	m.capacity.reported = now
	return true
}

// Capacity is what the nodes of the cluster have room for, nil until they are all read. The sums are made of a cache of the nodes and
// pods, so that an event costs the same however many there are.
func (m *Client) Capacity(ctx context.Context) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary, error) {
	for _, kind := range []string{"Node", "Pod"} {
		// A cache that is forbidden to list never syncs, and one that is no longer allowed to is not up to date.
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := m.API.List(ctx, list, client.Limit(1)); err != nil {
			m.stopCapacity()
			return nil, nil, err
		}
	}
	read, err := m.startCapacity()
	if err != nil {
		return nil, nil, err
	}
	wait, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var nodes corev1.NodeList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&nodes, &pods} {
		if err := read.List(wait, list, client.UnsafeDisableDeepCopy); err != nil {
			if wait.Err() != nil {
				return nil, nil, nil
			}
			return nil, nil, fmt.Errorf("list the nodes and pods of cluster %s: %w", m.Name, err)
		}
	}
	count, sum := capacity.Summarize(nodes.Items, pods.Items)
	return count, sum, nil
}

// startCapacity watches the nodes and the pods of the cluster that have not finished.
func (m *Client) startCapacity() (cache.Cache, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.capacity.cache != nil {
		return m.capacity.cache, nil
	}
	made, err := cache.New(m.Config, cache.Options{
		Mapper: m.API.RESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}: {Transform: keepAllocatable},
			&corev1.Pod{}:  {Transform: keepRequests, Field: fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the nodes and pods of cluster %s: %w", m.Name, err)
	}
	ctx, stop := context.WithCancel(m.ctx)
	go func() { _ = made.Start(ctx) }()
	m.capacity.cache, m.capacity.stop = made, stop
	return made, nil
}

func (m *Client) stopCapacity() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.capacity.stop != nil {
		m.capacity.stop()
	}
	m.capacity.cache, m.capacity.stop = nil, nil
}

// keepAllocatable drops all of a node but what its room is made of.
func keepAllocatable(object any) (any, error) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	kept := &corev1.Node{ObjectMeta: keepIdentity(n.ObjectMeta), Spec: corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable}, Status: corev1.NodeStatus{Allocatable: n.Status.Allocatable}}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			kept.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return kept, nil
}

// keepRequests drops all of a pod but its node, its phase and the sum of its requests.
func keepRequests(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	total := corev1.Container{Resources: corev1.ResourceRequirements{Requests: capacity.PodRequests(&p.Spec)}}
	return &corev1.Pod{
		ObjectMeta: keepIdentity(p.ObjectMeta), Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, Containers: []corev1.Container{total}},
		Status: corev1.PodStatus{Phase: p.Status.Phase},
	}, nil
}

func keepIdentity(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

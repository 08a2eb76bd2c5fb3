// Package capacity is how much room clusters have for pods: pure.
package capacity

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// PodRequests is what a node sets aside for a pod.
func PodRequests(spec *corev1.PodSpec) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range spec.Containers {
		add(total, containerRequests(&spec.Containers[i]))
	}
	// Sidecars run beside the containers, and beside the init containers that come after them.
	sidecars, starting := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		requests := containerRequests(c)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(total, requests)
			add(sidecars, requests)
			requests = corev1.ResourceList{}
		}
		add(requests, sidecars)
		raise(starting, requests)
	}
	raise(total, starting)
	if spec.Resources != nil {
		for name, quantity := range spec.Resources.Requests {
			total[name] = quantity
		}
	}
	add(total, spec.Overhead)
	return total
}

// containerRequests are those of a container; a limit without a request is one, too.
func containerRequests(c *corev1.Container) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, quantity := range c.Resources.Limits {
		all[name] = quantity
	}
	for name, quantity := range c.Resources.Requests {
		all[name] = quantity
	}
	return all
}

func add(to, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := to[name].DeepCopy()
		sum.Add(quantity)
		to[name] = sum
	}
}

// raise makes each quantity at least as large as the other one.
func raise(to, least corev1.ResourceList) {
	for name, quantity := range least {
		if have, found := to[name]; !found || have.Cmp(quantity) < 0 {
			to[name] = quantity
		}
	}
}

// Summarize adds up what the nodes of a cluster that take pods have, and what its pods request. Nodes that are not ready, or
// cordoned, and pods that have finished do not count.
func Summarize(nodes []corev1.Node, pods []corev1.Pod) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) {
	count := &clusterv1alpha1.NodeSummary{TotalNum: int32(len(nodes))}
	sum := &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{}, Allocating: corev1.ResourceList{}, Allocated: corev1.ResourceList{}}
	open := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		if !isReady(n) {
			continue
		}
		count.ReadyNum++
		if !n.Spec.Unschedulable {
			open[n.Name] = true
			add(sum.Allocatable, n.Status.Allocatable)
		}
	}
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		requests := PodRequests(&p.Spec)
		add(requests, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")})
		switch {
		case p.Spec.NodeName == "":
			add(sum.Allocating, requests)
		case open[p.Spec.NodeName]:
			add(sum.Allocated, requests)
		}
	}
	return count, sum
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Replicas is for how many more pods with these requests a cluster has room, by the sums of all its nodes.
func Replicas(sum *clusterv1alpha1.ResourceSummary, requests corev1.ResourceList) int64 {
	if sum == nil {
		return 0
	}
	each := requests.DeepCopy()
	if each == nil {
		each = corev1.ResourceList{}
	}
	each[corev1.ResourcePods] = resource.MustParse("1")
	room := int64(math.MaxInt32)
	for name, request := range each {
		if request.Sign() <= 0 {
			continue
		}
		left := sum.Allocatable[name].DeepCopy()
		left.Sub(sum.Allocated[name])
		left.Sub(sum.Allocating[name])
		room = min(room, amount(name, left)/amount(name, request))
	}
	return max(0, room)
}

// amount is a quantity as a number: of cores, in thousandths.
func amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

package inventory

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// A rollout makes a dozen events for each of its workloads, and a plan only changes with the last of them.
func TestDecisiveChanges(t *testing.T) {
	version := 1
	// rollout is a Deployment of three replicas, some of which are updated and ready.
	rollout := func(updated, ready int32, edits ...func(*appsv1.Deployment)) *appsv1.Deployment {
		version++
		d := makeDeployment("shop/cart", "moved", version)
		d.Generation, d.Spec.Replicas = 2, ptr.To(int32(3))
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: ready,
		}
		for _, edit := range edits {
			edit(d)
		}
		return d
	}
	progressing := func(status corev1.ConditionStatus, reason string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason}}
		}
	}
	skip := func(d *appsv1.Deployment) { d.Annotations["sailoperator.io/skip-migration"] = "true" }
	f := follow(t)
	first := rollout(0, 3)
	update := func(d *appsv1.Deployment) func() { return func() { f.deployments.Update(nil, d) } }
	for _, step := range []struct {
		name string
		do   func()
		want Change
	}{
		{"a workload that was not known", func() { f.deployments.Add(first) }, Decisive},
		{"the first new pod", func() { f.pods.Add(makePod("cart-1", "Deployment/cart", "new")) }, Progress},
		{"an updated replica", update(rollout(1, 3)), Progress},
		{"its condition", update(rollout(1, 3, progressing(corev1.ConditionTrue, "ReplicaSetUpdated"))), Progress},
		{"all are updated, and one is not ready", update(rollout(3, 2)), Progress},
		{"an annotation meanwhile", update(rollout(3, 2, skip)), Decisive},
		{"the annotation is gone", update(rollout(3, 2)), Decisive},
		{"the controller has given up", update(rollout(3, 2, progressing(corev1.ConditionFalse, "ProgressDeadlineExceeded"))), Decisive},
		{"a pod of it", func() { f.pods.Add(makePod("cart-2", "Deployment/cart", "new")) }, Decisive},
		{"it goes on", update(rollout(3, 2)), Decisive},
		{"the rollout has finished", update(rollout(3, 3)), Decisive},
		{"the last old pod has gone", func() { f.pods.Delete(makePod("cart-1", "Deployment/cart", "new")) }, Decisive},
		{"a pod of a workload that is not known", func() { f.pods.Add(makePod("db-0", "StatefulSet/db", "old")) }, Decisive},
		{"our own move", func() { f.ObserveWrite(makeDeployment("shop/cart", "moved again", version+1)) }, Progress},
		{"a namespace", func() { f.namespaces.Add(makeNamespace("shop", "old", 10)) }, Decisive},
		{"our own label", func() { f.ObserveNamespaceWrite(makeNamespace("shop", "new", 12)) }, Progress},
		{"the label of another client", func() { f.namespaces.Update(nil, makeNamespace("shop", "old", 13)) }, Decisive},
	} {
		if n := f.changed(step.do); n != 1 {
			t.Errorf("%s: %d changes", step.name, n)
		}
		if f.last != step.want {
			t.Errorf("%s: change %d, want %d", step.name, f.last, step.want)
		}
	}
}

// A batch goes on with the last of its workloads, and what another workload does is no matter of the batch.
func TestAwait(t *testing.T) {
	f := follow(t)
	version := 1
	rollout := func(name string, updated int32, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
		version++
		d := makeDeployment("shop/"+name, "moved", version)
		d.Generation, d.Spec.Replicas = 2, ptr.To(int32(1))
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: updated, ReadyReplicas: 1, AvailableReplicas: 1}
		d.Status.Conditions = append(conditions, appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue})
		return d
	}
	await := func(group string, names ...string) {
		var owners []Owner
		for _, name := range names {
			owners = append(owners, From(rollout(name, 0)).Owner())
		}
		f.Await(group, owners)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "other"} {
		f.deployments.Add(rollout(name, 0))
	}
	silent := rollout("silent", 0)
	silent.Status.Conditions = nil
	f.deployments.Add(silent)
	finish := func(name string) func() { return func() { f.deployments.Update(nil, rollout(name, 1)) } }
	finish("a")()
	await("default", "a", "b", "c", "d", "f", "silent")
	await("second", "e")
	givenUp := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse}
	failed := rollout("c", 0)
	failed.Status.Conditions = []appsv1.DeploymentCondition{givenUp}
	for _, step := range []struct {
		name string
		do   func()
		want Change
	}{
		{"one of the batch", finish("b"), Progress},
		{"none of any batch", finish("other"), Decisive},
		{"the last of another batch", finish("e"), Decisive},
		{"one whose status does not tell when it ended", finish("silent"), Decisive},
		{"one that has given up", func() { f.deployments.Update(nil, failed) }, Decisive},
		{"one that was deleted", func() { f.deployments.Delete(rollout("f", 0)) }, Decisive},
		{"the last of the batch", finish("d"), Decisive},
	} {
		if n := f.changed(step.do); n != 1 || f.last != step.want {
			t.Errorf("%s: %d changes, the last is %d, want %d", step.name, n, f.last, step.want)
		}
	}
	f.deployments.Update(nil, rollout("a", 0))
	await("default", "a", "g")
	f.Await("default", nil)
	if f.changed(finish("a")); f.last != Decisive {
		t.Error("what is no longer awaited holds up what is")
	}
}

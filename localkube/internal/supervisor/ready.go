package supervisor

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

func ready(ctx context.Context, client kubernetes.Interface) error {
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// defaultServiceAccount exists once the controller manager works.
func defaultServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

// ensureNodes makes the nodes that KWOK then plays.
func ensureNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	for i := range count {
		name := fmt.Sprintf("node-%d", i)
		capacity := corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse("1000"),
			corev1.ResourceMemory:           resource.MustParse("4Ti"),
			corev1.ResourceEphemeralStorage: resource.MustParse("100Ti"),
			corev1.ResourcePods:             resource.MustParse("100k"),
		}
		_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:        name,
				Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// freeNodes takes the nodes from a KWOK that was killed: a new one would
// otherwise wait until the leases of the old one have run out.
func freeNodes(ctx context.Context, client kubernetes.Interface) error {
	return client.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

const probeNamespace, probeLabel = metav1.NamespaceSystem, "localkube-probe"

// probeDeployment proves the whole chain, from Deployment to a Ready pod, by
// using it; its name is new at each start, so that an old one proves nothing.
func probeDeployment(ctx context.Context, client kubernetes.Interface, name string) error {
	deployments := client.AppsV1().Deployments(probeNamespace)
	live, err := deployments.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = deployments.Create(ctx, probe(name, nil), metav1.CreateOptions{})
		return errors.Join(errors.New("the probe was just made"), err)
	}
	if err != nil {
		return err
	}
	if live.Status.ReadyReplicas < 1 {
		return fmt.Errorf("%d of %d pods are ready", live.Status.ReadyReplicas, live.Status.Replicas)
	}
	return nil
}

func probe(name string, annotations map[string]string) *appsv1.Deployment {
	labels := map[string]string{"app": probeLabel, "probe": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "localkube/probe"}}},
			},
		},
	}
}

func removeProbes(ctx context.Context, client kubernetes.Interface) error {
	return client.AppsV1().Deployments(probeNamespace).DeleteCollection(ctx,
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)},
		metav1.ListOptions{LabelSelector: "app=" + probeLabel})
}

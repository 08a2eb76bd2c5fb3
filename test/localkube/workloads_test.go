//go:build linux

package localkube_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// deployment of pods that do nothing, behaving as the annotations ask.
func deployment(name string, replicas int32, annotations map[string]string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec:       podSpec(),
			},
		},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/main"}}}
}

func createDeployment(t testing.TB, client kubernetes.Interface, namespace string, d *appsv1.Deployment) {
	t.Helper()
	if _, err := client.AppsV1().Deployments(namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create Deployment %s/%s: %v", namespace, d.Name, err)
	}
}

func awaitReady(t testing.TB, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	eventually(t, "Deployment "+name+" is ready", func() error {
		d, err := client.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.ReadyReplicas != *d.Spec.Replicas || d.Status.AvailableReplicas != *d.Spec.Replicas {
			return fmt.Errorf("%d of %d are ready", d.Status.ReadyReplicas, *d.Spec.Replicas)
		}
		return nil
	})
}

// onlyPod of a Deployment of one.
func onlyPod(t testing.TB, client kubernetes.Interface, namespace, name string) (*corev1.Pod, error) {
	t.Helper()
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != 1 {
		return nil, fmt.Errorf("%s has %d pods", name, len(pods.Items))
	}
	return &pods.Items[0], nil
}

func isReady(pod *corev1.Pod) bool { return readyCondition(pod).Status == corev1.ConditionTrue }

func readyCondition(pod *corev1.Pod) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c
		}
	}
	return corev1.PodCondition{}
}

func createNamespace(t testing.TB, client kubernetes.Interface, name string, labels map[string]string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create namespace %s: %v", name, err)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"kept": "yes"}}
}

func createConfigMap(t testing.TB, client kubernetes.Interface, namespace string, c *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	made, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), c, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create ConfigMap %s/%s: %v", namespace, c.Name, err)
	}
	return made
}

func isKept(t testing.TB, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	c, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || c.Data["kept"] != "yes" {
		t.Errorf("ConfigMap %s is lost: %v", name, err)
	}
}

package scale_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

const (
	namespaces       = 1000
	podsPerNamespace = 20
	writers          = 8
)

func namespaceName(i int) string { return fmt.Sprintf("team-%04d", i) }

// fast is for writing much: binary, and limited by the server alone.
func fast(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.QPS = -1
	return config
}

// fill makes a cluster of many pods. Half of the namespaces choose a tag, and all pods have been injected. Only one pod
// in four runs, because the status takes longer to write than the rest. It makes the pods smaller than in a cluster that
// is at work, and so the comparison stricter.
func fill(b *testing.B, config *rest.Config) {
	start := time.Now()
	kube, err := kubernetes.NewForConfig(fast(config))
	if err != nil {
		b.Fatal(err)
	}
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(writers)
	for i := range namespaces {
		group.Go(func() error {
			return retry.OnError(retry.DefaultBackoff, apierrors.IsTimeout, func() error { return fillNamespace(ctx, kube, i) })
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	// Not to the log, which a benchmark that passes does not show.
	fmt.Printf("made %d pods in %d namespaces in %.0f s\n", namespaces*podsPerNamespace, namespaces, time.Since(start).Seconds())
}

// fillNamespace can be called again after it failed.
func fillNamespace(ctx context.Context, kube kubernetes.Interface, i int) error {
	name := namespaceName(i)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}}
	if i%2 == 0 {
		namespace.Labels[v1.LabelRevision] = "prod"
	}
	_, err := kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	// The garbage collector would remove the pods of an owner that is not there.
	owner := replicaSet()
	_, err = kube.AppsV1().ReplicaSets(name).Create(ctx, owner, metav1.CreateOptions{})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the ReplicaSet in namespace %s: %w", name, err)
	}
	if owner, err = kube.AppsV1().ReplicaSets(name).Get(ctx, owner.Name, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("get the ReplicaSet in namespace %s: %w", name, err)
	}
	for j := range podsPerNamespace {
		if err := makePod(ctx, kube, owner, i*podsPerNamespace+j); err != nil {
			return fmt.Errorf("make pod %d in namespace %s: %w", j, name, err)
		}
	}
	return nil
}

func makePod(ctx context.Context, kube kubernetes.Interface, owner *appsv1.ReplicaSet, n int) error {
	pods := kube.CoreV1().Pods(owner.Namespace)
	pod, err := pods.Create(ctx, injectedPod(owner, n%podsPerNamespace, revisionOf(n)), metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if err != nil || n%4 > 0 {
		return client.IgnoreAlreadyExists(err)
	}
	pod.Status = runningStatus(pod, n)
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: "kubelet"})
	return err
}

func revisionOf(pod int) string {
	if pod%3 == 0 {
		return "default-v1-24-0"
	}
	return "default-v1-26-0"
}

func replicaSet() *appsv1.ReplicaSet {
	labels := map[string]string{"app.kubernetes.io/name": "checkout", "app": "checkout", "version": "v1", "pod-template-hash": "7d9f8c6b5d"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "checkout-7d9f8c6b5d", Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "checkout", Image: "registry.example.org/shop/checkout:v1.42.7"}}},
			},
		},
	}
}

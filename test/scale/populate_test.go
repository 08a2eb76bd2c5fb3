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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// extent is how much a mesh holds.
type extent struct{ namespaces, deployments int }

const replicas = 2

// workloadLabel is on the Deployments and pods of the mesh.
const workloadLabel = "scale.fairlead.dev/workload"

func (e extent) pods() int { return e.deployments * replicas }

// relabelled is how many namespaces name a revision.
func (e extent) relabelled() int {
	n := 0
	for i := range e.namespaces {
		if chooserOf(i) == byNamespace {
			n++
		}
	}
	return n
}

func (e extent) String() string {
	return fmt.Sprintf("%d Deployments in %d namespaces", e.deployments, e.namespaces)
}

// chooser is what names the revision of a workload.
type chooser int

const (
	// byNamespace is the label of the namespace, which names a revision and is moved.
	byNamespace chooser = iota
	// byTag is the label of the namespace too, and names a tag that moves by itself.
	byTag
	// byItself is the label of the workload's own pods.
	byItself
)

// chooserOf gives three of five namespaces a revision, one a tag and one nothing.
func chooserOf(namespace int) chooser {
	switch namespace % 5 {
	case 3:
		return byTag
	case 4:
		return byItself
	}
	return byNamespace
}

// populate makes the workloads and waits until all of them run.
func (m *mesh) populate(b *testing.B) {
	b.Helper()
	began := time.Now()
	kube, err := kubernetes.NewForConfig(fast(m.cluster.Config()))
	if err != nil {
		b.Fatal(err)
	}
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(writers)
	for i := range m.extent.namespaces {
		group.Go(func() error {
			return retry.OnError(retry.DefaultBackoff, apierrors.IsTimeout, func() error { return m.populateNamespace(ctx, kube, i) })
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	all := follow(b, kube)
	defer all.stop()
	generations := map[types.NamespacedName]int64{}
	for _, name := range all.names() {
		generations[name] = 1
	}
	if err := all.ready(b.Context(), 10*time.Minute, generations, func(types.NamespacedName) bool { return true }); err != nil {
		b.Fatal(err)
	}
	m.whereabouts(b)
	fmt.Printf("made %s in %.0f s\n", m.extent, time.Since(began).Seconds())
}

// populateNamespace can be called again after it failed.
func (m *mesh) populateNamespace(ctx context.Context, kube kubernetes.Interface, i int) error {
	revision := revisionOfVersion(m.version)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i), Labels: map[string]string{}}}
	pods := map[string]string{}
	switch chooserOf(i) {
	case byNamespace:
		namespace.Labels[v1.LabelRevision] = revision
	case byTag:
		namespace.Labels[v1.LabelRevision] = tagName
	case byItself:
		pods[v1.LabelRevision] = revision
	}
	_, err := kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	for j := i; j < m.extent.deployments; j += m.extent.namespaces {
		d := deployment(fmt.Sprintf("checkout-%d", j/m.extent.namespaces), pods)
		_, err := kube.AppsV1().Deployments(namespace.Name).Create(ctx, d, metav1.CreateOptions{})
		if client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create Deployment %s/%s: %w", namespace.Name, d.Name, err)
		}
	}
	return nil
}

// deployment is an ordinary service before injection.
func deployment(name string, labels map[string]string) *appsv1.Deployment {
	selector := map[string]string{"app": name}
	template := map[string]string{"app": name, "app.kubernetes.io/name": name, "version": "v1", workloadLabel: name}
	for key, value := range labels {
		template[key] = value
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{workloadLabel: name}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](replicas),
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: template},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{appContainer()}, Volumes: volumes()[:2]},
			},
		},
	}
}

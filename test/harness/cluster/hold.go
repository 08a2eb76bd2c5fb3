package cluster

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// Annotations of a pod template by which a test decides how its pods live. With the value Held, a pod waits to be ready, to
// crash or to be gone until the test calls Release.
const (
	ReadyAfter     = "localkube.fairlead.dev/ready-after"
	CrashAfter     = "localkube.fairlead.dev/crash-after"
	TerminateAfter = "localkube.fairlead.dev/terminate-after"

	Held  = "held"
	Never = "never"
)

// Release lets the held pods of a namespace with these labels go on, by the annotation that holds them: those that are
// there, and until the test ends also those that come. Without labels it is all pods of the namespace.
func (c *Cluster) Release(t testing.TB, namespace, annotation string, podLabels map[string]string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = labels.Set(podLabels).String() }))
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
	})
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"0s"}}}`, annotation)
	release := func(object any) {
		pod := object.(*corev1.Pod)
		if pod.Annotations[annotation] != Held {
			return
		}
		// An API server that is starved may not answer the first time, and there may be no other event of the pod.
		err := wait.Try(ctx, func(ctx context.Context) error {
			_, err := client.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			t.Errorf("release pod %s/%s: %v", namespace, pod.Name, err)
		}
	}
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    release,
		UpdateFunc: func(_, object any) { release(object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
}

package scale_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// counts has the pods of the mesh that are to stay, by Deployment, with the revisions that they run. It follows their
// metadata, as the operator does.
type counts struct {
	mu        sync.Mutex
	revisions map[types.NamespacedName]map[string]string
	stop      func()
}

func countPods(b *testing.B, config *rest.Config, changed func()) *counts {
	b.Helper()
	all, err := metadata.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	pods := all.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	own := metav1.ListOptions{LabelSelector: workloadLabel, FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
	list, err := pods.List(b.Context(), own)
	if err != nil {
		b.Fatal(err)
	}
	own.ResourceVersion = list.ResourceVersion
	events, err := pods.Watch(b.Context(), own)
	if err != nil {
		b.Fatal(err)
	}
	c := &counts{revisions: map[types.NamespacedName]map[string]string{}, stop: events.Stop}
	for i := range list.Items {
		c.enter(&list.Items[i], false)
	}
	go func() {
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
				c.enter(pod, event.Type == watch.Deleted)
				changed()
			}
		}
	}()
	return c
}

func (c *counts) enter(pod *metav1.PartialObjectMetadata, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[workloadLabel]}
	if c.revisions[of] == nil {
		c.revisions[of] = map[string]string{}
	}
	if gone || pod.DeletionTimestamp != nil {
		delete(c.revisions[of], pod.Name)
		return
	}
	c.revisions[of][pod.Name] = pod.Annotations[v1.AnnotationRevision]
}

// run tells whether all pods of a Deployment, as many as it has replicas, run a revision.
func (c *counts) run(deployment types.NamespacedName, revision string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, runs := range c.revisions[deployment] {
		if runs != revision {
			return false
		}
	}
	return len(c.revisions[deployment]) == replicas
}

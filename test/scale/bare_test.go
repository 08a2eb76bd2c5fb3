package scale_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// bare moves workloads as the operator does, and does nothing else: the same patches by the same account, as many at a
// time, in the same batches, and it waits for the same.
type bare struct {
	kube kubernetes.Interface
	to   string
	// namespaces are those that name the revision that workloads come from.
	namespaces []string
	// deployments and their pods are followed, as the operator follows them.
	deployments *following
	pods        *counts
}

// newBare knows all workloads before it starts, as the operator does.
func newBare(b *testing.B, m *mesh) *bare {
	b.Helper()
	config := m.config(b)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	outdated, err := kube.CoreV1().Namespaces().List(b.Context(), metav1.ListOptions{
		LabelSelector: v1.LabelRevision + "=" + revisionOfVersion(m.other()),
	})
	if err != nil {
		b.Fatal(err)
	}
	bare := &bare{kube: kube, to: revisionOfVersion(m.version), deployments: follow(b, kube)}
	bare.pods = countPods(b, config, bare.deployments.wake)
	for _, namespace := range outdated.Items {
		bare.namespaces = append(bare.namespaces, namespace.Name)
	}
	return bare
}

func (c *bare) stop() {
	c.deployments.stop()
	c.pods.stop()
}

// labelPropagation is how long API servers may take to observe changed labels of namespaces: a pod that is created before that
// gets the sidecar of the old revision. Whoever moves workloads safely waits for it, once.
const labelPropagation = time.Second

func (c *bare) migrate(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if err := concurrently(c.namespaces, func(name string) error { return c.relabel(ctx, name) }); err != nil {
		return 0, err
	}
	if len(c.namespaces) > 0 {
		time.Sleep(labelPropagation)
	}
	for batch := range slices.Chunk(c.deployments.names(), batchSize) {
		var mu sync.Mutex
		generations := map[types.NamespacedName]int64{}
		err := concurrently(batch, func(name types.NamespacedName) error {
			generation, err := c.move(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			generations[name] = generation
			return err
		})
		if err != nil {
			return 0, err
		}
		onTarget := func(name types.NamespacedName) bool { return c.pods.run(name, c.to) }
		if err := c.deployments.ready(ctx, time.Minute, generations, onTarget); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// concurrently does as many things at a time as the operator.
func concurrently[T any](all []T, do func(T) error) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for _, one := range all {
		group.Go(func() error { return do(one) })
	}
	return group.Wait()
}

func (c *bare) relabel(ctx context.Context, namespace string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1.LabelRevision, c.to)
	_, err := c.kube.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("relabel namespace %s: %w", namespace, err)
	}
	return nil
}

// move restarts a Deployment, and takes away what the operator wrote down on it, which has become untrue.
func (c *bare) move(ctx context.Context, name types.NamespacedName) (generation int64, err error) {
	template := fmt.Sprintf(`"annotations":{%q:%q}`, v1.AnnotationRestartedAt, time.Now().UTC().Format(time.RFC3339))
	if c.deployments.get(name).Spec.Template.Labels[v1.LabelRevision] != "" {
		template = fmt.Sprintf(`"labels":{%q:%q}`, v1.LabelRevision, c.to)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}},"spec":{"template":{"metadata":{%s}}}}`,
		v1.AnnotationMigration, template)
	d, err := c.kube.AppsV1().Deployments(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return 0, fmt.Errorf("move Deployment %s: %w", client.ObjectKeyFromObject(d), err)
	}
	return d.Generation, nil
}

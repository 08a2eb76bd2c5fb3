package scale_test

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// What a process that is to write events finds in its environment: the kubeconfig of the cluster, and the revision that
// it is to move pods to.
const (
	writerVariable   = "SCALE_WRITER"
	revisionVariable = "SCALE_REVISION"
)

const events = 2 * namespaces

// writeEvents changes two pods in every namespace: the status of one, as kubelets do all the time, and the revision of
// the other.
func writeEvents(kubeconfig, revision string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(fast(config))
	if err != nil {
		return err
	}
	status := fmt.Appendf(nil, `{"status":{"message":"before %s"}}`, revision)
	move := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1.AnnotationRevision, revision)
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(writers)
	for i := range namespaces {
		pods := client.CoreV1().Pods(namespaceName(i))
		group.Go(func() error {
			if _, err := pods.Patch(ctx, podName(0), types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
				return err
			}
			_, err := pods.Patch(ctx, podName(1), types.MergePatchType, move, metav1.PatchOptions{})
			return err
		})
	}
	return group.Wait()
}

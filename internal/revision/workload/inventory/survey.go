package inventory

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Survey reads a fleet, and who uses what, afresh from an API server, page by page. The reader must not be a cache, which
// has no pages.
func Survey(ctx context.Context, reader client.Reader) (*Fleet, *usage.Snapshot, error) {
	f := New(func() {})
	users, err := usage.Survey(ctx, reader, f)
	if err != nil {
		return nil, nil, err
	}
	err = usage.Each(ctx, reader, &appsv1.DeploymentList{}, nil, func(o runtime.Object) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.enterDeployment(slim(o.(*appsv1.Deployment)))
	})
	return f, users, err
}

// CountPods counts the pods of a workload afresh from an API server. The reader must not be a cache.
func CountPods(ctx context.Context, reader client.Reader, workload Workload) (Pods, error) {
	pods, err := usage.PodsIn(ctx, reader, workload.Namespace)
	if err != nil {
		return nil, err
	}
	f := New(func() {})
	for i := range pods {
		f.EnterPod(&pods[i])
	}
	return f.tallies[workload], nil
}

// EnterNamespace takes in a namespace as it is now.
func (f *Fleet) EnterNamespace(o metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enterNamespace(o)
}

// EnterPod takes in a pod as it is now.
func (f *Fleet) EnterPod(o metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enterPod(o)
}

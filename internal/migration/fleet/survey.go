package fleet

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Survey reads a fleet afresh from an API server, page by page. The reader must not be a cache, which has no pages.
func Survey(ctx context.Context, reader client.Reader) (*Fleet, error) {
	f := New(func() {})
	if err := usage.EachUser(ctx, reader, kindNamespace, func(o metav1.Object) { f.enterNamespace(o) }); err != nil {
		return nil, err
	}
	if err := usage.EachUser(ctx, reader, kindPod, func(o metav1.Object) { f.enterPod(o) }); err != nil {
		return nil, err
	}
	return f, usage.Each(ctx, reader, &appsv1.DeploymentList{}, nil,
		func(o runtime.Object) { f.enterDeployment(o.(*appsv1.Deployment)) })
}

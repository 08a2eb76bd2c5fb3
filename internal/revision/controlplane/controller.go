// Package controlplane installs the control plane of an IstioRevision from Istio's charts, keeps it as it was
// installed, tells whether it serves and who uses it, and removes it.
package controlplane

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// workers install several control planes at the same time.
const workers = 4

// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisions,verbs=list;watch;patch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisions/status,verbs=patch

// Setup adds the controller of IstioRevisions to the manager.
func Setup(mgr ctrl.Manager, tools installer.Tools) error {
	r := &reconciler{tools, mgr.GetAPIReader()}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request { return r.requestsForAll(ctx) })
	b := ctrl.NewControllerManagedBy(mgr).
		Named("istiorevision").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		WithLogConstructor(kube.Logger(mgr, "istiorevision", v1.IstioRevisionKind)).
		For(&v1.IstioRevision{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, installer.Deleting,
		))).
		// The shared releases are managed by one of the revisions.
		Watches(&v1.IstioRevision{}, all, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, after := e.ObjectOld.(*v1.IstioRevision), e.ObjectNew.(*v1.IstioRevision)
				return before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero() ||
					before.Spec.Version != after.Spec.Version || installer.Paused(before) != installer.Paused(after)
			},
		})).
		// A tag may take or release the name of a revision; the tag named default selects the validating revision.
		Watches(&v1.IstioRevisionTag{}, all, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(tools.Usage.Source()).
		WatchesRawSource(tools.Usage.WatchErrorSource(r.requestsForAll))
	return tools.Objects.Watch(b, installer.Watch{
		Kind:          v1.IstioRevisionKind,
		ReleaseSuffix: istiodSuffix,
		Unowned:       r.requestsForAll,
		Namespace:     r.requestsInNamespace,
	}).Complete(kube.Traced("istiorevision", installer.Stage[Observed]{
		Tools: tools, Observe: r.observe, Plan: Plan, Record: r.recordChart, RecordEvent: r.recordEvent, Report: r.report,
	}))
}

type reconciler struct {
	installer.Tools
	live client.Reader
}

// requestsForAll are the requests for every revision.
func (r *reconciler) requestsForAll(ctx context.Context) []ctrl.Request {
	return kube.RequestsMatching(ctx, r.Cache, &v1.IstioRevisionList{}, func(*v1.IstioRevision) bool { return true })
}

// requestsInNamespace are the requests for the revisions of a namespace.
func (r *reconciler) requestsInNamespace(ctx context.Context, namespace string) []ctrl.Request {
	return kube.RequestsMatching(ctx, r.Cache, &v1.IstioRevisionList{}, func(revision *v1.IstioRevision) bool {
		return revision.Spec.Namespace == namespace
	})
}

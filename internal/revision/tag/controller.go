// Package tag keeps an IstioRevisionTag: a stable name whose webhook leads to a revision, or to whichever revision of
// an Istio is the active one.
package tag

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisiontags,verbs=list;watch;patch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisiontags/status,verbs=patch

// Setup adds the controller of IstioRevisionTags to the manager.
func Setup(mgr ctrl.Manager, tools installer.Tools) error {
	r := &reconciler{tools}
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).
		Named("istiorevisiontag").
		WithLogConstructor(kube.Logger(mgr, "istiorevisiontag", v1.IstioRevisionTagKind)).
		For(&v1.IstioRevisionTag{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, installer.Deleting,
		))).
		Watches(&v1.Istio{}, handler.EnqueueRequestsFromMapFunc(r.requestsForIstio), changed).
		Watches(&v1.IstioRevision{}, handler.EnqueueRequestsFromMapFunc(r.requestsForRevision), changed).
		WatchesRawSource(tools.Usage.Source()).
		WatchesRawSource(tools.Usage.WatchErrorSource(r.requestsForAll))
	return tools.Objects.Watch(b, installer.Watch{
		Kind:          v1.IstioRevisionTagKind,
		ReleaseSuffix: releaseSuffix,
		Namespace:     r.requestsInNamespace,
	}).Complete(kube.Traced("istiorevisiontag", installer.Stage[Observed]{
		Tools: tools, Observe: r.observe, Plan: Plan, RecordEvent: r.recordEvent, Report: r.report,
	}))
}

type reconciler struct{ installer.Tools }

func (r *reconciler) requestsForIstio(ctx context.Context, istio client.Object) []ctrl.Request {
	return r.requestsMatching(ctx, func(tag *v1.IstioRevisionTag) bool { return follows(tag, istio.GetName()) })
}

// requestsForRevision enqueues the tags that point to a revision, should point to it, or want its name.
func (r *reconciler) requestsForRevision(ctx context.Context, revision client.Object) []ctrl.Request {
	name, owner := revision.GetName(), metav1.GetControllerOf(revision)
	return r.requestsMatching(ctx, func(tag *v1.IstioRevisionTag) bool {
		ref := tag.Spec.TargetRef
		return tag.Name == name || tag.Status.IstioRevision == name ||
			ref.Kind == v1.IstioRevisionKind && ref.Name == name ||
			owner != nil && follows(tag, owner.Name)
	})
}

// requestsForAll are the requests for every tag.
func (r *reconciler) requestsForAll(ctx context.Context) []ctrl.Request {
	return r.requestsMatching(ctx, func(*v1.IstioRevisionTag) bool { return true })
}

// requestsInNamespace are the tags that point into a namespace.
func (r *reconciler) requestsInNamespace(ctx context.Context, namespace string) []ctrl.Request {
	return r.requestsMatching(ctx, func(tag *v1.IstioRevisionTag) bool { return tag.Status.IstiodNamespace == namespace })
}

func follows(tag *v1.IstioRevisionTag, istio string) bool {
	return tag.Spec.TargetRef.Kind == v1.IstioKind && tag.Spec.TargetRef.Name == istio
}

func (r *reconciler) requestsMatching(ctx context.Context, match func(*v1.IstioRevisionTag) bool) []ctrl.Request {
	return kube.RequestsMatching(ctx, r.Cache, &v1.IstioRevisionTagList{}, match)
}

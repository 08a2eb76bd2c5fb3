package generate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// setupGenerators adds the controller that reports invalid HostnameGenerators.
func (r *reconciler) setupGenerators(mgr ctrl.Manager) error {
	b := newController(mgr, "hostnames", 1).
		For(&kumav1alpha1.HostnameGenerator{}, builder.WithPredicates(specChanged))
	return complete(b, "HostnameGenerators", r.reconcileGenerator)
}

func (r *reconciler) reconcileGenerator(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var generator kumav1alpha1.HostnameGenerator
	if err := r.cache.Get(ctx, request.NamespacedName, &generator); err != nil {
		r.events.Forget(isAbout(kumav1alpha1.HostnameGeneratorKind, request.NamespacedName))
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	reason, text := "", ""
	if generator.Namespace != r.SystemNamespace {
		reason, text = ReasonIgnored, fmt.Sprintf("HostnameGenerator is ignored outside namespace %s: create it in that namespace", r.SystemNamespace)
	} else if err := desired.CheckTemplate(&generator); err != nil {
		reason, text = kumav1alpha1.ReasonBadTemplate, err.Error()
	}
	if r.events.IsNew(subjectOf(kumav1alpha1.HostnameGeneratorKind, &generator), text) {
		r.recorder.Eventf(&generator, nil, corev1.EventTypeWarning, reason, "name", "%s", text)
	}
	return reconcile.Result{}, nil
}

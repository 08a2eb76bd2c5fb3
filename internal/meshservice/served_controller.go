package meshservice

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/meshstatus"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// statusInterval is how often the status of a served Mesh is updated.
const statusInterval = 10 * time.Second

// notServedInterval is how often the status of a Mesh is updated until it is served.
const notServedInterval = time.Second

// maxProblems bounds the problems in a status.
const maxProblems = 3

// servedReconciler reports on each Mesh whether its proxies are served, and what could not be built.
type servedReconciler struct {
	client   client.Client
	where    desired.ZoneInfo
	serving  ServingOptions
	ready    func(mesh string) bool
	problems func(mesh string) []snapshot.Problem
}

func (r *servedReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("meshservice-served").For(&kumav1alpha1.Mesh{}).Complete(r)
}

// Reconcile reports on one Mesh.
func (r *servedReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var mesh kumav1alpha1.Mesh
	if err := r.client.Get(ctx, request.NamespacedName, &mesh); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !mesh.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	served := servedCondition(&mesh, r.where, r.serving, r.ready(mesh.Name), r.problems(mesh.Name))
	_, err := meshstatus.Apply(ctx, r.client, &mesh, meshstatus.Served, served, nil)
	// After a conflict, the event of the other write triggers the next reconcile.
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	if r.serving.enabled() && !r.ready(mesh.Name) {
		return reconcile.Result{RequeueAfter: notServedInterval}, nil
	}
	return reconcile.Result{RequeueAfter: statusInterval}, nil
}

// servedCondition is the condition Served of a Mesh.
func servedCondition(mesh *kumav1alpha1.Mesh, where desired.ZoneInfo, serving ServingOptions, ready bool, problems []snapshot.Problem) metav1.Condition {
	c := metav1.Condition{Type: kumav1alpha1.ConditionServed, ObservedGeneration: mesh.Generation}
	switch {
	case !serving.enabled():
		c.Status, c.Reason = metav1.ConditionFalse, kumav1alpha1.ReasonNotServed
		c.Message = "xDS serving is disabled: start the operator with --mesh-bind-address, or set mesh.serving.enabled of the chart"
	case !ready:
		c.Status, c.Reason = metav1.ConditionFalse, kumav1alpha1.ReasonNotServed
		c.Message = "proxies are not served until every kuma.io/service of the mesh has a VIP; VIPs are recorded in namespace " + where.SystemNamespace + ": create the namespace if it is missing"
	case len(problems) > 0:
		c.Status, c.Reason = metav1.ConditionTrue, kumav1alpha1.ReasonIncomplete
		c.Message = problemsText(problems)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, kumav1alpha1.ReasonServed, "proxies are served at "+serving.BindAddress
	}
	return c
}

// problemsText names the first problems.
func problemsText(problems []snapshot.Problem) string {
	var lines []string
	for _, p := range problems[:min(maxProblems, len(problems))] {
		lines = append(lines, problemText(p))
	}
	if more := len(problems) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

func problemText(p snapshot.Problem) string {
	if p.Field == "" {
		return p.Object + ": " + p.Message
	}
	return p.Object + ": " + p.Field + ": " + p.Message
}

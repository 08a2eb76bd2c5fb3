package meshservice

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
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
	client  client.Client
	where   desired.ZoneInfo
	serving ServingOptions
	// by is who serves the proxies, as "at ADDRESS" or "by ..."; empty before anybody does.
	by       func() string
	ready    func(mesh string) bool
	problems func(mesh string) []snapshot.Problem
	// live reads past the cache.
	live     client.Reader
	recorder events.EventRecorder
	reported kube.EventDedup[types.UID]
}

func (r *servedReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("meshservice-served").For(&kumav1alpha1.Mesh{}).Complete(kube.Traced("meshservice-served", r))
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
	served := servedCondition(&mesh, r.where, r.serving, r.by(), r.ready(mesh.Name), r.problems(mesh.Name))
	_, err := meshstatus.Apply(ctx, r.client, &mesh, meshstatus.Served, served, nil)
	switch {
	case err == nil:
		r.reported.IsNew(mesh.UID, "")
	case apierrors.IsNotFound(err):
		if err := r.reportNoStatus(ctx, &mesh, served); err != nil {
			return reconcile.Result{}, err
		}
	case !apierrors.IsConflict(err):
		// After a conflict, the event of the other write triggers the next reconcile.
		return reconcile.Result{}, err
	}
	if r.serving.enabled() && served.Reason == kumav1alpha1.ReasonNotServed {
		return reconcile.Result{RequeueAfter: notServedInterval}, nil
	}
	return reconcile.Result{RequeueAfter: statusInterval}, nil
}

// reportNoStatus reports the condition in an event and in the log if the Mesh exists, and only its status cannot be written:
// the CRD of another control plane may have no status subresource.
func (r *servedReconciler) reportNoStatus(ctx context.Context, mesh *kumav1alpha1.Mesh, served metav1.Condition) error {
	var live kumav1alpha1.Mesh
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(mesh), &live); err != nil {
		return client.IgnoreNotFound(err)
	}
	text := noStatusText(served)
	if live.UID == mesh.UID && r.reported.IsNew(mesh.UID, text) {
		r.recorder.Eventf(mesh, nil, corev1.EventTypeWarning, kumav1alpha1.ReasonNoStatusSubresource, "WriteStatus", "%s", text)
		ctrl.LoggerFrom(ctx).Info("the status of a Mesh cannot be written", "mesh", mesh.Name, "why", text)
	}
	return nil
}

// noStatusText says why there is no status, and the condition that it would have.
func noStatusText(served metav1.Condition) string {
	return fmt.Sprintf("CRD meshes.kuma.io has no status subresource, so the status of the Mesh cannot be written: "+
		"add subresources: {status: {}} to each version of the CRD; %s is %s (%s): %s", served.Type, served.Status, served.Reason, served.Message)
}

// servedCondition is the condition Served of a Mesh.
func servedCondition(mesh *kumav1alpha1.Mesh, where desired.ZoneInfo, serving ServingOptions, by string, ready bool, problems []snapshot.Problem,
) metav1.Condition {
	c := metav1.Condition{Type: kumav1alpha1.ConditionServed, ObservedGeneration: mesh.Generation}
	switch {
	case !serving.enabled():
		c.Status, c.Reason = metav1.ConditionFalse, kumav1alpha1.ReasonNotServed
		c.Message = "xDS serving is disabled: start the operator with --mesh-bind-address, or set mesh.serving.enabled of the chart"
	case by == "" && serving.Reports:
		c.Status, c.Reason = metav1.ConditionFalse, kumav1alpha1.ReasonNotServed
		c.Message = "no process of `fairlead serve-mesh` has renewed its MeshServingReport within 15s: start one, or see the pods of the chart's Deployment that serves proxies"
	case by == "":
		c.Status, c.Reason = metav1.ConditionFalse, kumav1alpha1.ReasonNotServed
		c.Message = "the xDS server is starting, and does not listen at " + serving.BindAddress + " yet"
	case !ready:
		c.Status, c.Reason = metav1.ConditionFalse, kumav1alpha1.ReasonNotServed
		c.Message = "proxies are not served until every kuma.io/service of the mesh has a VIP; VIPs are recorded in namespace " + where.SystemNamespace + ": create the namespace if it is missing"
	case mesh.MTLSBackend() != "":
		c.Status, c.Reason = metav1.ConditionFalse, kumav1alpha1.ReasonMTLSNotServed
		c.Message = fmt.Sprintf("proxies are served without mTLS, although spec.mtls.enabledBackend is %q: "+
			"serve this mesh from a control plane that issues certificates, or remove spec.mtls.enabledBackend if its traffic may be unencrypted", mesh.MTLSBackend())
	case len(problems) > 0:
		c.Status, c.Reason = metav1.ConditionTrue, kumav1alpha1.ReasonIncomplete
		c.Message = problemsText(problems)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, kumav1alpha1.ReasonServed, "proxies are served "+by
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

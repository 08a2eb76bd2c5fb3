package installer

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// Logger of a controller: lines name the resource as kubectl does; the start of the controller is logged at debug level.
func Logger(mgr ctrl.Manager, kind string) func(*reconcile.Request) logr.Logger {
	log := mgr.GetLogger()
	return func(request *reconcile.Request) logr.Logger {
		if request == nil {
			return log.V(1).WithValues("controller", strings.ToLower(kind))
		}
		return log.WithValues("resource", strings.ToLower(kind)+"/"+request.Name)
	}
}

// RecordFailure reports, in an event and in the log, a new failure to apply the spec.
func RecordFailure(ctx context.Context, recorder events.EventRecorder, about runtime.Object, before, after []metav1.Condition) {
	trouble := NewFailure(before, after)
	if trouble == nil {
		return
	}
	recorder.Eventf(about, nil, corev1.EventTypeWarning, trouble.Reason, "reconcile", "%s", trouble.Message)
	if trouble.Reason != string(v1.ReasonReconcileError) { // which is logged with every attempt
		ctrl.LoggerFrom(ctx).Info("cannot apply the spec", "reason", trouble.Reason, "why", trouble.Message)
	}
}

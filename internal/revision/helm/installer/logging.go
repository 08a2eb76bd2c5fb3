package installer

import (
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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

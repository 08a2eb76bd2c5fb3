package installer

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/internal/kube"
)

// StatusError is the result after a failed status write: a conflict is requeued, and is no error.
func StatusError(failure, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	}
	return ctrl.Result{}, errors.Join(failure, err)
}

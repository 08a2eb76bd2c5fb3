package installer

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// AtResourceVersion is for writing the status of a resource as it was looked at: of one that was changed since, or made anew
// under the same name, that is a conflict. Where a status is written, the API server asks for no UID.
func AtResourceVersion(object metav1.Object) *metav1ac.ObjectMetaApplyConfiguration {
	return metav1ac.ObjectMeta().WithName(object.GetName()).WithResourceVersion(object.GetResourceVersion())
}

// StatusError is what follows when a status could not be written: what somebody has changed is looked at again, and is no
// error.
func StatusError(failure, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: ConflictRequeueDelay}, nil
	}
	return ctrl.Result{}, errors.Join(failure, err)
}

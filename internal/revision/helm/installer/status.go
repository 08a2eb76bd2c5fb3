package installer

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/internal/kube"
)

// AtResourceVersion makes a status write conditional: a resource that was changed or recreated since it was read is a
// conflict. For a status, the API server checks no UID.
func AtResourceVersion(object metav1.Object) *metav1ac.ObjectMetaApplyConfiguration {
	return metav1ac.ObjectMeta().WithName(object.GetName()).WithResourceVersion(object.GetResourceVersion())
}

// StatusError is the result after a failed status write: a conflict is requeued, and is no error.
func StatusError(failure, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	}
	return ctrl.Result{}, errors.Join(failure, err)
}

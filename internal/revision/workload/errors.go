package workload

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// isPermanentRefusal holds for what an API server would say again of the same object.
func isPermanentRefusal(err error) bool {
	return apierrors.IsForbidden(err) && !isMissingPermission(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// isMissingPermission holds for what we may not do, as opposed to what nobody may. An API server that has just started says so
// of everything until it has read who may do what.
func isMissingPermission(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is forbidden: User ")
}

// isServerError holds for what has nothing to do with the object: nobody answers, or is able to.
func isServerError(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsUnauthorized(err)
}

package kube

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRejected holds for a request that the API server rejects for its content, or because it is not allowed. A retry is rejected as
// well, until a user changes something.
func IsRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// IsMissingPermission holds for a request that needs a further RBAC rule. Admission forbids requests, too.
func IsMissingPermission(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is forbidden: User ")
}

// IsTooLarge holds for an object that an API server, or its store, rejects for its size.
func IsTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || err != nil && strings.Contains(err.Error(), "request is too large")
}

// IsUnavailable holds for a request that an API server, or a webhook that it calls, fails to serve.
func IsUnavailable(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

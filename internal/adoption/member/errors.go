package member

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// AsUserError marks an error that only a user can resolve.
func AsUserError(err error) error { return userError{err} }

type userError struct{ error }

func (t userError) Unwrap() error { return t.error }

// IsUserError holds for errors that an immediate retry does not resolve.
func IsUserError(err error) bool {
	var t userError
	return errors.As(err, &t) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || IsTooLarge(err) ||
		apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// IsTooLarge holds for what an API server, or its store, does not take for its size.
func IsTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || err != nil && strings.Contains(err.Error(), "request is too large")
}

// RefusedReason says why a cluster does not take an object, and what to do about it.
func RefusedReason(cluster string, object *unstructured.Unstructured, err error) passage.Reason {
	what := fmt.Sprintf("%s %s in cluster %s", object.GetKind(), model.NameOf(object), cluster)
	switch {
	case meta.IsNoMatchError(err):
		return passage.Because(model.ReasonFailed, "%s: the cluster has no kind %s in %s: install its CRD in the cluster", what, object.GetKind(), object.GetAPIVersion())
	case IsTooLarge(err):
		return passage.Because(model.ReasonFailed, "%s is too large for the cluster (%v): split the resource", what, err)
	}
	if rule := missingRule(err); rule != "" {
		return passage.Because(model.ReasonFailed, `%s: %v: add the rule %s to a ClusterRole of the cluster with the label %s: "true"`, what, err, rule, model.LabelMemberRole)
	}
	return passage.Because(model.ReasonFailed, "%s: %v", what, err)
}

// missingRule is the one that would allow what a cluster forbids, if it is a rule that is missing: admission forbids too.
func missingRule(err error) string {
	var said apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &said) || said.Status().Details == nil || !strings.Contains(err.Error(), `cannot `) || !strings.Contains(err.Error(), ` resource "`) {
		return ""
	}
	details := said.Status().Details
	return fmt.Sprintf("{apiGroups: [%q], resources: [%s], verbs: [%s]}", details.Group, details.Kind, strings.Join(memberVerbs, ", "))
}

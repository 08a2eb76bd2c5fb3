package member

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// AsUserError marks an error that only a user can resolve.
func AsUserError(err error) error { return userError{err} }

type userError struct{ error }

func (t userError) Unwrap() error { return t.error }

// IsUserError holds for errors that an immediate retry does not resolve. A member that is unavailable is one of them: its users see
// that on the Work, and the connection is checked on its own.
func IsUserError(err error) bool {
	return errors.As(err, new(userError)) || kube.IsRejected(err) || kube.IsTooLarge(err) || kube.IsUnavailable(err) ||
		apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
}

// isUnreachable holds for errors that the connection to a cluster is checked for. An internal error is none: that of a webhook
// which cannot be called is only its users' to resolve.
func isUnreachable(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsUnauthorized(err)
}

// RefusedReason says why a cluster does not take an object, and what to do about it.
func RefusedReason(cluster string, object *unstructured.Unstructured, err error) passage.Reason {
	what := fmt.Sprintf("%s %s in cluster %s", object.GetKind(), model.NameOf(object), cluster)
	switch {
	case meta.IsNoMatchError(err):
		return passage.Because(model.ReasonFailed, "%s: the cluster has no kind %s in %s: install its CRD in the cluster", what, object.GetKind(), object.GetAPIVersion())
	case isUnreachable(err):
		return passage.Because(model.ReasonUnreachable, "waiting until cluster %s can be reached: %s %s: %v", cluster, object.GetKind(), model.NameOf(object), err)
	case kube.IsTooLarge(err):
		return passage.Because(model.ReasonFailed, "%s is too large for the cluster (%v): split the resource", what, err)
	}
	if rule := missingRule(err); rule != "" {
		return passage.Because(model.ReasonFailed, `%s: %v: add the rule %s to a ClusterRole of the cluster with the label %s: "true"`, what, err, rule, model.LabelMemberRole)
	}
	return passage.Because(model.ReasonFailed, "%s: %v", what, err)
}

// missingRule is the RBAC rule that a forbidden request needs, empty if it was not forbidden by RBAC.
func missingRule(err error) string {
	var said apierrors.APIStatus
	if !kube.IsMissingPermission(err) || !errors.As(err, &said) || said.Status().Details == nil {
		return ""
	}
	details := said.Status().Details
	return fmt.Sprintf("{apiGroups: [%q], resources: [%s], verbs: [%s]}", details.Group, details.Kind, strings.Join(memberVerbs, ", "))
}

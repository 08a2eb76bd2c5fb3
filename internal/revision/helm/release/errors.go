package release

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RenderError means that a chart cannot be rendered with its values. Retrying does not help.
type RenderError struct{ Err error }

func (e *RenderError) Error() string { return e.Err.Error() }
func (e *RenderError) Unwrap() error { return e.Err }

// OwnedByOthersError means that objects of the release exist and have another owner.
type OwnedByOthersError struct{ Conflicts []Conflict }

// Conflict is an object and its owner.
type Conflict struct{ Object, Holder string }

func (e *OwnedByOthersError) Error() string {
	first := e.Conflicts[0]
	message := fmt.Sprintf("%s exists and belongs to %s", first.Object, first.Holder)
	if others := len(e.Conflicts) - 1; others > 0 {
		message += fmt.Sprintf(" (and %d more objects)", others)
	}
	return message
}

// objectError is an error of the API server about an object, on one line of bounded length.
type objectError struct {
	action, object string
	err            error
}

func (e *objectError) Error() string {
	return e.action + " " + e.object + ": " + truncate(e.err.Error())
}
func (e *objectError) Unwrap() error { return e.err }

// Cause is the error about an object, without its context; or the whole error.
func Cause(err error) error {
	var about *objectError
	if errors.As(err, &about) {
		return about
	}
	return err
}

// Refused tells whether the API server rejects an object as invalid.
func Refused(err error) bool { return apierrors.IsInvalid(err) || isTypeMismatch(err) }

// isTypeMismatch tells whether an object does not match the schema of its kind. The API server has no status reason for that,
// only a message.
func isTypeMismatch(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonUnknown {
		return false
	}
	message := status.Status().Message
	return strings.HasPrefix(message, "failed to create typed patch object") ||
		strings.HasPrefix(message, "failed to convert new object")
}

func newObjectError(doing string, object *unstructured.Unstructured, err error) error {
	return &objectError{doing, describe(object), err}
}

func describe(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
}

// maxErrorLength leaves room for the RBAC rules that the API server lists, one per line.
const maxErrorLength = 700

func truncate(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) <= maxErrorLength {
		return string(line)
	}
	return string(line[:maxErrorLength-1]) + "…"
}

package release

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RenderError is what Helm has to say about a chart and values that do not fit together. Only other ones can help.
type RenderError struct{ Err error }

func (e *RenderError) Error() string { return e.Err.Error() }
func (e *RenderError) Unwrap() error { return e.Err }

// OwnedByOthersError is a refusal to touch objects that this release has not made.
type OwnedByOthersError struct{ Conflicts []Conflict }

// Conflict is an object and who has it.
type Conflict struct{ Object, Holder string }

func (e *OwnedByOthersError) Error() string {
	first := e.Conflicts[0]
	message := fmt.Sprintf("%s exists and belongs to %s", first.Object, first.Holder)
	if others := len(e.Conflicts) - 1; others > 0 {
		message += fmt.Sprintf(" (and %d more objects)", others)
	}
	return message
}

// objectError is what the API server said about an object, on one line of bounded length.
type objectError struct {
	doing, object string
	err           error
}

func (e *objectError) Error() string {
	return e.doing + " " + e.object + ": " + truncate(e.err.Error())
}
func (e *objectError) Unwrap() error { return e.err }

// Cause is the part of an error that speaks of an object, without what was being done for its sake; or all of it.
func Cause(err error) error {
	var about *objectError
	if errors.As(err, &about) {
		return about
	}
	return err
}

// Refused tells whether the API server will not have an object as it is, however often it is asked.
func Refused(err error) bool { return apierrors.IsInvalid(err) || isTypeMismatch(err) }

// isTypeMismatch is an object that does not fit its kind, a text where a number belongs. The API server knows no reason for
// that, only words.
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

// maxErrorLength leaves room for the rules of a role that may not be granted, which the API server lists one per line.
const maxErrorLength = 700

func truncate(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) <= maxErrorLength {
		return string(line)
	}
	return string(line[:maxErrorLength-1]) + "…"
}

package injection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
)

// Verdict is what a check shows.
type Verdict string

const (
	// Injects is a pod that comes back with the sidecar of the revision.
	Injects Verdict = "Injects"
	// Fails is a pod that the injector refuses, or that comes back without that sidecar.
	Fails Verdict = "Fails"
	// Unchecked is a dry run that is refused with or without a sidecar, or not answered. It says nothing about the injector.
	Unchecked Verdict = "Unchecked"
)

// answer is the response to the dry run of a pod in a namespace: the pod as it would be stored, or an error.
type answer struct {
	namespace string
	pod       *corev1.Pod
	err       error
}

// judge is the verdict on an answer, with the answer in words. Whether a refusal comes from the injector shows in a second dry
// run, of a pod that no injector selects: control is its error.
func judge(a answer, control error, revision string) (Verdict, string) {
	switch {
	case a.err == nil:
		return judgeSidecar(a, revision)
	case isUnanswered(a.err):
		return Unchecked, fmt.Sprintf("the dry run of a pod in namespace %s was not answered: %s", a.namespace, quote(a.err))
	case control != nil && isUnanswered(control):
		return Unchecked, fmt.Sprintf("the dry run of a pod in namespace %s was not answered: %s", a.namespace, quote(control))
	case control != nil:
		return Unchecked, fmt.Sprintf("the dry run of a pod in namespace %s was refused, also without injection: %s", a.namespace, quote(control))
	}
	return Fails, fmt.Sprintf("the dry run of a pod in namespace %s was refused: %s", a.namespace, quote(a.err))
}

func judgeSidecar(a answer, revision string) (Verdict, string) {
	is := func(c corev1.Container) bool { return c.Name == sidecarName }
	got := a.pod.Annotations[v1.AnnotationRevision]
	switch {
	case !slices.ContainsFunc(a.pod.Spec.Containers, is) && !slices.ContainsFunc(a.pod.Spec.InitContainers, is):
		return Fails, fmt.Sprintf("the dry run of a pod in namespace %s got no sidecar: no webhook selects such pods, "+
			"or its failures are ignored, or its injector leaves them out", a.namespace)
	case got != revision:
		return Fails, fmt.Sprintf("the dry run of a pod in namespace %s got the sidecar of revision %q", a.namespace, got)
	}
	return Injects, ""
}

// needsControl tells whether a second dry run shows where an error comes from.
func needsControl(err error) bool {
	return err != nil && !isUnanswered(err)
}

// dependsOnNamespace tells whether the same check may end differently in another namespace. A webhook that cannot be called
// cannot be called for any.
func dependsOnNamespace(a answer, control error) bool {
	if a.err == nil || isUnanswered(a.err) || kube.IsMissingPermission(a.err) {
		return false
	}
	return control != nil || !apierrors.IsInternalError(a.err)
}

// isUnanswered tells whether an API server, or the way to it, is down or overloaded. A webhook that fails is an internal error.
func isUnanswered(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsUnauthorized(err)
}

// maxQuote keeps messages within the 1024 bytes of an event.
const maxQuote = 500

func quote(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > maxQuote {
		text = strings.ToValidUTF8(text[:maxQuote], "") + "..."
	}
	return text
}

package injection

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

const (
	target = "default-v1-26-0"
	old    = "default-v1-24-0"
	system = "istio-system"
)

var (
	pods = schema.GroupResource{Resource: "pods"}
	// What API servers answer.
	unreachable = apierrors.NewInternalError(errors.New(`failed calling webhook "rev.object.sidecar-injector.istio.io": ` +
		`failed to call webhook: Post "https://istiod-default-v1-26-0.istio-system.svc:443/inject?timeout=10s": connection refused`))
	denied = &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: 400, Reason: metav1.StatusReasonBadRequest,
		Message: `admission webhook "rev.object.sidecar-injector.istio.io" denied the request: template: broken`,
	}}
	quota    = apierrors.NewForbidden(pods, podName, errors.New("exceeded quota: small"))
	security = apierrors.NewForbidden(pods, podName, errors.New(`violates PodSecurity "restricted:latest": container "istio-init"`))
	//lint:ignore ST1005 the words of the API server
	noRole = apierrors.NewForbidden(pods, "", errors.New(`User "fairlead" cannot create resource "pods"`))
	gone   = apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, system)
	busy   = apierrors.NewTooManyRequests("later", 1)
)

func sidecarOf(revision string, native bool) *corev1.Pod {
	pod := newPod(system, nil)
	pod.Annotations = map[string]string{v1.AnnotationRevision: revision}
	proxy := corev1.Container{Name: "istio-proxy"}
	if native {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, proxy)
	} else {
		pod.Spec.Containers = append(pod.Spec.Containers, proxy)
	}
	return pod
}

func annotated(revision string) *corev1.Pod {
	pod := newPod(system, nil)
	pod.Annotations = map[string]string{v1.AnnotationRevision: revision}
	return pod
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		pod          *corev1.Pod
		err, control error
		want         Verdict
		says         string
		// elsewhere is set where another namespace may answer otherwise.
		elsewhere bool
	}{
		"the sidecar of the revision":        {pod: sidecarOf(target, false), want: Injects},
		"a native sidecar":                   {pod: sidecarOf(target, true), want: Injects},
		"the sidecar of another revision":    {pod: sidecarOf(old, false), want: Fails, says: `got the sidecar of revision "default-v1-24-0"`},
		"no sidecar":                         {pod: newPod(system, nil), want: Fails, says: "in namespace istio-system got no sidecar"},
		"an annotation without a sidecar":    {pod: annotated(target), want: Fails, says: "got no sidecar"},
		"a webhook that cannot be called":    {err: unreachable, want: Fails, says: "connection refused"},
		"an injector that refuses":           {err: denied, want: Fails, says: "template: broken", elsewhere: true},
		"a policy against the sidecar":       {err: security, want: Fails, says: "istio-init", elsewhere: true},
		"a quota":                            {err: quota, control: quota, want: Unchecked, says: "also without injection: ", elsewhere: true},
		"another webhook that is down":       {err: unreachable, control: unreachable, want: Unchecked, says: "also without injection", elsewhere: true},
		"no namespace":                       {err: gone, control: gone, want: Unchecked, says: "not found", elsewhere: true},
		"no permission":                      {err: noRole, control: noRole, want: Unchecked, says: `cannot create resource "pods"`},
		"an API server that is busy":         {err: busy, want: Unchecked, says: "was not answered: later"},
		"an API server that is busy later":   {err: denied, control: busy, want: Unchecked, says: "was not answered: later", elsewhere: true},
		"an API server that does not answer": {err: context.DeadlineExceeded, want: Unchecked, says: "was not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			a := answer{system, test.pod, test.err}
			got, words := judge(a, test.control, target)
			if got != test.want || !strings.Contains(words, test.says) || (words == "") != (got == Injects) {
				t.Errorf("got %s: %s", got, words)
			}
			if got := dependsOnNamespace(a, test.control); got != test.elsewhere {
				t.Errorf("depends on the namespace: %t", got)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	long := strings.Repeat("ö", maxQuote)
	if got := quote(errors.New("two\n  lines " + long)); !strings.HasPrefix(got, "two lines ö") || len(got) > maxQuote+3 || !strings.HasSuffix(got, "ö...") {
		t.Errorf("got %q", got)
	}
}

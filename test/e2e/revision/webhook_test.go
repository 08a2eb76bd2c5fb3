package revision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// ofTag selects what the charts install for a tag.
func ofTag(tag string) client.MatchingLabels { return client.MatchingLabels{"istio.io/tag": tag} }

// leadsTo is the Service that all webhooks of a configuration call, as "namespace/name".
func leadsTo(configuration *admissionv1.MutatingWebhookConfiguration) string {
	var services []string
	for _, webhook := range configuration.Webhooks {
		if service := webhook.ClientConfig.Service; service != nil {
			services = append(services, service.Namespace+"/"+service.Name)
		}
	}
	slices.Sort(services)
	return fmt.Sprint(slices.Compact(services))
}

// webhooks are where a tag's webhooks lead to, one for each configuration.
func (w *world) webhooks(ctx context.Context, tag string) ([]string, error) {
	var list admissionv1.MutatingWebhookConfigurationList
	if err := w.List(ctx, &list, ofTag(tag)); err != nil {
		return nil, err
	}
	var services []string
	for i := range list.Items {
		services = append(services, leadsTo(&list.Items[i]))
	}
	return services, nil
}

// injects checks that a tag has one webhook, and where it leads to; with no service, that there is none.
func (w *world) injects(t testing.TB, tag, service string) {
	t.Helper()
	got, err := w.webhooks(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	if service != "" {
		want = []string{"[" + service + "]"}
	}
	if !slices.Equal(got, want) {
		t.Errorf("webhooks of tag %s lead to %v, want %v", tag, got, want)
	}
}

// injected makes a pod as soon as it would get the sidecar of a revision.
func (w *world) injected(t testing.TB, namespace, name, revision string) *corev1.Pod {
	t.Helper()
	// The API server takes a moment to know of a webhook, and istiod to sign it.
	wait.Until(t, func(ctx context.Context) error {
		pod := makePod(namespace, name)
		if err := w.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		return hasSidecar(pod, revision)
	})
	return w.injectedNow(t, namespace, name, revision)
}

// injectedNow makes a pod, whose sidecar must be that of a revision. An istiod that is starved may not answer in time.
func (w *world) injectedNow(t testing.TB, namespace, name, revision string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	wait.Until(t, func(ctx context.Context) error {
		pod = makePod(namespace, name)
		return w.Create(ctx, pod)
	})
	harness.DeleteAfter(t, w, pod)
	if err := hasSidecar(pod, revision); err != nil {
		t.Fatal(err)
	}
	return pod
}

func hasSidecar(pod *corev1.Pod, revision string) error {
	var missing []error
	if got := pod.Annotations[v1.AnnotationRevision]; got != revision {
		missing = append(missing, fmt.Errorf("annotation %s of pod %s/%s is %q, want %q",
			v1.AnnotationRevision, pod.Namespace, pod.Name, got, revision))
	}
	isProxy := func(c corev1.Container) bool { return c.Name == "istio-proxy" }
	if !slices.ContainsFunc(slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers), isProxy) {
		missing = append(missing, fmt.Errorf("pod %s/%s has no sidecar", pod.Namespace, pod.Name))
	}
	return errors.Join(missing...)
}

package checks

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// Only webhooks that refuse writes of Fairlead's kinds are found: those that have to answer, and that nothing serves, or that nobody
// can tell of.
func TestObserveAdmission(t *testing.T) {
	rule := func(group string, resources ...string) admissionv1.RuleWithOperations {
		return admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.OperationAll}, Rule: admissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources,
		}}
	}
	at := func(service string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "kuma-system", Name: service}}
	}
	webhook := func(name string, client admissionv1.WebhookClientConfig, rules ...admissionv1.RuleWithOperations) admissionv1.MutatingWebhook {
		return admissionv1.MutatingWebhook{Name: name, ClientConfig: client, Rules: rules}
	}
	of := func(w admissionv1.MutatingWebhook, change func(*admissionv1.MutatingWebhook)) admissionv1.MutatingWebhook {
		change(&w)
		return w
	}
	url := admissionv1.WebhookClientConfig{URL: ptr.To("https://karmada-webhook.karmada-system.svc:443/validate")}
	meshes := webhook("w.example.com", at("gone"), rule("kuma.io", "meshes"))
	policies := webhook("w.example.com", url, rule("policy.karmada.io", "propagationpolicies"))
	notServed := func(why string, webhooks ...string) []NotServed { return []NotServed{{Why: why, Webhooks: webhooks}} }
	for name, c := range map[string]struct {
		webhooks []admissionv1.MutatingWebhook
		// unreachable holds if the API server does not reach the webhook.
		unreachable bool
		want        *Admission
	}{
		"served": {webhooks: []admissionv1.MutatingWebhook{webhook("w", at("ready"), rule("kuma.io", "meshes"))}},
		"not served": {
			webhooks: []admissionv1.MutatingWebhook{webhook("w", at("unready"), rule("kuma.io", "meshes", "dataplanes/status"))},
			want:     &Admission{Resources: []string{"dataplanes.kuma.io", "meshes.kuma.io"}, NotServed: notServed("Service kuma-system/unready has no ready endpoint", "w")},
		},
		"without endpoints": {
			webhooks: []admissionv1.MutatingWebhook{webhook("w", at("empty"), rule("kuma.io", "meshes"))},
			want:     &Admission{Resources: []string{"meshes.kuma.io"}, NotServed: notServed("Service kuma-system/empty has no ready endpoint", "w")},
		},
		"without a Service": {
			webhooks: []admissionv1.MutatingWebhook{webhook("w", at("gone"), rule("kuma.io", "meshes"), rule("", "pods"))},
			want:     &Admission{Resources: []string{"meshes.kuma.io", "pods"}, NotServed: notServed("Service kuma-system/gone does not exist", "w")},
		},
		"several, for two causes": {
			webhooks: []admissionv1.MutatingWebhook{
				webhook("a", at("gone"), rule("kuma.io", "meshes")), webhook("b", at("empty"), rule("kuma.io", "dataplanes")),
				webhook("c", at("ready"), rule("kuma.io", "meshes")), webhook("d", at("gone"), rule("kuma.io", "meshservices")),
			},
			want: &Admission{Resources: []string{"dataplanes.kuma.io", "meshes.kuma.io", "meshservices.kuma.io"}, NotServed: []NotServed{
				{Why: "Service kuma-system/gone does not exist", Webhooks: []string{"a", "d"}},
				{Why: "Service kuma-system/empty has no ready endpoint", Webhooks: []string{"b"}},
			}},
		},
		"may be ignored": {webhooks: []admissionv1.MutatingWebhook{of(meshes, func(w *admissionv1.MutatingWebhook) { w.FailurePolicy = ptr.To(admissionv1.Ignore) })}},
		"of other kinds": {webhooks: []admissionv1.MutatingWebhook{webhook("w", at("gone"), rule("kuma.io", "meshtraces"), rule("", "pods"))}},
		"of a URL":       {webhooks: []admissionv1.MutatingWebhook{policies}},
		"of a URL, not reached": {
			webhooks: []admissionv1.MutatingWebhook{webhook("w.example.com", url, rule("policy.karmada.io", "*"))}, unreachable: true,
			want: &Admission{
				Resources: []string{"clusterpropagationpolicies.policy.karmada.io", "propagationpolicies.policy.karmada.io"},
				NotServed: notServed(`the API server does not reach it: Internal error occurred: failed calling webhook "w.example.com": no such host`, "w.example.com"),
			},
		},
		"of a URL, without an object to try": {
			webhooks: []admissionv1.MutatingWebhook{webhook("w", url, rule("policy.karmada.io", "clusterpropagationpolicies"))},
			want:     &Admission{NotTried: []string{"w"}},
		},
		"of a URL, not called for updates": {
			webhooks: []admissionv1.MutatingWebhook{of(policies, func(w *admissionv1.MutatingWebhook) {
				created := rule("policy.karmada.io", "propagationpolicies")
				created.Operations = []admissionv1.OperationType{admissionv1.Create}
				w.Rules = []admissionv1.RuleWithOperations{created, rule("policy.karmada.io", "propagationpolicies/status")}
			})},
			want: &Admission{NotTried: []string{"w.example.com"}},
		},
		"of a URL, called for some objects": {
			webhooks: []admissionv1.MutatingWebhook{of(policies, func(w *admissionv1.MutatingWebhook) {
				w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			})},
			want: &Admission{NotTried: []string{"w.example.com"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			slice := func(service string, ready bool) *discoveryv1.EndpointSlice {
				return &discoveryv1.EndpointSlice{
					ObjectMeta: metav1.ObjectMeta{Namespace: "kuma-system", Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
					Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
				}
			}
			service := func(name string) *corev1.Service {
				return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kuma-system", Name: name}}
			}
			clients := fake.NewClientset(service("ready"), service("unready"), service("empty"), slice("ready", true), slice("unready", false),
				&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Webhooks: c.webhooks})
			policy := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "p"}}}
			policy.SetGroupVersionKind(schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"})
			objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
				{Group: "policy.karmada.io", Version: "v1alpha1", Resource: "propagationpolicies"}:        "PropagationPolicyList",
				{Group: "policy.karmada.io", Version: "v1alpha1", Resource: "clusterpropagationpolicies"}: "ClusterPropagationPolicyList",
			}, policy)
			if c.unreachable {
				objects.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewInternalError(errors.New(`failed calling webhook "w.example.com": no such host`))
				})
			}
			f := Facts{Unknown: map[string]string{}}
			f.observeAdmission(t.Context(), clients, objects)
			var want []Admission
			if c.want != nil {
				c.want.Kind, c.want.Name = "MutatingWebhookConfiguration", "theirs"
				want = []Admission{*c.want}
			}
			if diff := cmp.Diff(want, f.Admission); diff != "" || len(f.Unknown) > 0 {
				t.Errorf("%s%v", diff, f.Unknown)
			}
		})
	}
}

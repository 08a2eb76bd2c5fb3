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

// Only webhooks that refuse writes of Fairlead's kinds are found: those that have to answer, and that nothing serves.
func TestObserveAdmission(t *testing.T) {
	rule := func(group string, resources ...string) admissionv1.RuleWithOperations {
		return admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.OperationAll}, Rule: admissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources,
		}}
	}
	at := func(service string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "kuma-system", Name: service}}
	}
	url := admissionv1.WebhookClientConfig{URL: ptr.To("https://karmada-webhook.karmada-system.svc:443/validate")}
	for name, c := range map[string]struct {
		client admissionv1.WebhookClientConfig
		rules  []admissionv1.RuleWithOperations
		policy *admissionv1.FailurePolicyType
		// unreachable holds if the API server does not reach the webhook.
		unreachable bool
		resources   []string
		why         string
	}{
		"served":                {client: at("ready"), rules: []admissionv1.RuleWithOperations{rule("kuma.io", "meshes")}},
		"not served":            {client: at("unready"), rules: []admissionv1.RuleWithOperations{rule("kuma.io", "meshes", "dataplanes/status")}, resources: []string{"dataplanes.kuma.io", "meshes.kuma.io"}, why: "Service kuma-system/unready has no ready endpoint"},
		"without endpoints":     {client: at("empty"), rules: []admissionv1.RuleWithOperations{rule("kuma.io", "meshes")}, resources: []string{"meshes.kuma.io"}, why: "Service kuma-system/empty has no ready endpoint"},
		"without a Service":     {client: at("gone"), rules: []admissionv1.RuleWithOperations{rule("kuma.io", "meshes"), rule("", "pods")}, resources: []string{"meshes.kuma.io", "pods"}, why: "Service kuma-system/gone does not exist"},
		"may be ignored":        {client: at("gone"), rules: []admissionv1.RuleWithOperations{rule("kuma.io", "meshes")}, policy: ptr.To(admissionv1.Ignore)},
		"of other kinds":        {client: at("gone"), rules: []admissionv1.RuleWithOperations{rule("kuma.io", "meshtraces"), rule("", "pods")}},
		"of a URL":              {client: url, rules: []admissionv1.RuleWithOperations{rule("policy.karmada.io", "propagationpolicies")}},
		"of a URL, not reached": {client: url, rules: []admissionv1.RuleWithOperations{rule("policy.karmada.io", "*")}, unreachable: true, resources: []string{"clusterpropagationpolicies.policy.karmada.io", "propagationpolicies.policy.karmada.io"}, why: `the API server does not reach it: Internal error occurred: failed calling webhook "w.example.com": no such host`},
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
				&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Webhooks: []admissionv1.MutatingWebhook{{
					Name: "w.example.com", ClientConfig: c.client, Rules: c.rules, FailurePolicy: c.policy,
				}}})
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
			if c.resources != nil {
				want = []Admission{{Kind: "MutatingWebhookConfiguration", Name: "theirs", Resources: c.resources, Why: c.why}}
			}
			if diff := cmp.Diff(want, f.Admission); diff != "" || len(f.Unknown) > 0 {
				t.Errorf("%s%v", diff, f.Unknown)
			}
		})
	}
}

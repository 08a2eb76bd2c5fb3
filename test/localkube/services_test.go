//go:build linux

package localkube_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

const callTimeout = 30 // seconds that the API server waits for a webhook: as many as it may

// The API server's calls to a Service reach the process that plays it.
func TestServiceReachesALocalProcess(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	client, namespace := clientOf(t, c.Config()), c.Namespace(t)
	name := "hook." + namespace + ".svc"
	first, second := startWebhook(t, name), startWebhook(t, name)
	service := namespace + "/hook:443"

	succeed(t, "serve", "--dir", c.Dir, "--service", service, "--to", first.address)
	validating(t, client, namespace, byService(namespace, "hook", first.ca))
	if err := tryConfigMap(t, client, namespace, "too-early"); err == nil || !strings.Contains(err.Error(), `"hook" not found`) {
		t.Errorf("before the Service is there: %v, want it missed", err)
	}
	createService(t, client, namespace, "hook")

	t.Run("it is called, by the name of the Service", func(t *testing.T) {
		refusedByWebhook(t, client, namespace)
		if err := tryConfigMap(t, client, namespace, "allowed"); err != nil {
			t.Error(err)
		}
		if calls := first.calledBy(); len(calls) == 0 || slices.ContainsFunc(calls, func(called string) bool { return called != name }) {
			t.Errorf("called as %v, want %s", calls, name)
		}
	})
	t.Run("status shows it", func(t *testing.T) {
		shown := fmt.Sprintf("service %s  -  served by %s", service, first.address)
		if table := localkube(t, "status", "--dir", c.Dir).stdout; !strings.Contains(strings.Join(strings.Fields(table), " "), strings.Join(strings.Fields(shown), " ")) {
			t.Errorf("status does not show %q:\n%s", shown, table)
		}
	})
	t.Run("another process takes over, whose CA is not trusted yet", func(t *testing.T) {
		succeed(t, "serve", "--dir", c.Dir, "--service", service, "--to", second.address)
		refused(t, client, namespace, "untrusted", "certificate signed by unknown authority")
		if calls := second.calledBy(); len(calls) > 0 {
			t.Errorf("called nevertheless: %v", calls)
		}
	})
	validating(t, client, namespace, byService(namespace, "hook", second.ca))
	t.Run("and then is", func(t *testing.T) { refusedByWebhook(t, client, namespace) })
	t.Run("removed, it is refused with what to do", func(t *testing.T) {
		r := succeed(t, "serve", "--dir", c.Dir, "--service", service, "--remove")
		if !strings.Contains(r.stdout, "served by no local process") {
			t.Errorf("serve --remove: %s", r)
		}
		refusedByProxy(t, client, namespace, "localkube serve")
	})
}

func TestServiceWithoutProcess(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	client, namespace := clientOf(t, c.Config()), c.Namespace(t)
	createService(t, client, namespace, "hook")
	validating(t, client, namespace, byService(namespace, "hook", startWebhook(t, "hook").ca))
	refusedByProxy(t, client, namespace, "localkube serve")
}

func TestWebhookByURL(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	client := clientOf(t, c.Config())
	hook := startWebhook(t, "hook")
	t.Run("on this machine", func(t *testing.T) {
		namespace := c.Namespace(t)
		validating(t, client, namespace, byURL("https://127.0.0.1:"+portOf(hook.address), hook.ca))
		refusedByWebhook(t, client, namespace)
	})
	for name, test := range map[string]struct{ url, says string }{
		"on another machine": {"https://10.0.0.1", "no local process plays 10.0.0.1:443"},
		"by a name":          {"https://webhook.example.com", "localkube reaches only processes on this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := c.Namespace(t)
			validating(t, client, namespace, byURL(test.url, hook.ca))
			refusedByProxy(t, client, namespace, test.says)
		})
	}
}

// Conversion takes the same way as admission.
func TestConversionReachesALocalProcess(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	client, namespace := clientOf(t, c.Config()), c.Namespace(t)
	hook := startWebhook(t, "convert."+namespace+".svc")
	createService(t, client, namespace, "convert")
	succeed(t, "serve", "--dir", c.Dir, "--service", namespace+"/convert:443", "--to", hook.address)

	group := namespace + ".example.com"
	createConvertedType(t, c, group, namespace, hook.ca)
	objects, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	old := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "cart"}}}
	eventually(t, "an object of the type can be made", func() error {
		_, err := objects.Resource(old).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // it was made by a try whose answer was lost
		}
		return err
	})
	var converted *unstructured.Unstructured
	eventually(t, "it can be read in the other version, once the API server has heard of the Service", func() (err error) {
		converted, err = objects.Resource(old.GroupResource().WithVersion("v2")).Namespace(namespace).Get(t.Context(), "cart", metav1.GetOptions{})
		return err
	})
	if by := converted.Object["convertedBy"]; by != "the webhook" {
		t.Errorf("converted by %v, want the webhook", by)
	}
}

func createConvertedType(t *testing.T, c *cluster.Cluster, group, namespace string, ca []byte) {
	t.Helper()
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
		}
	}
	client, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	types := client.ApiextensionsV1().CustomResourceDefinitions()
	name := "things." + group
	_, err = types.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true), version("v2", false)},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig: &apiextensionsv1.WebhookClientConfig{
						Service:  &apiextensionsv1.ServiceReference{Namespace: namespace, Name: "convert", Path: ptr.To("/convert")},
						CABundle: ca,
					},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := types.Delete(background(t), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func createService(t *testing.T, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	if _, err := client.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func byService(namespace, name string, ca []byte) admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{
		Service:  &admissionv1.ServiceReference{Namespace: namespace, Name: name, Path: ptr.To("/validate")},
		CABundle: ca,
	}
}

func byURL(url string, ca []byte) admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{URL: ptr.To(url + "/validate"), CABundle: ca}
}

// validating puts the webhook before every ConfigMap of the namespace, whose
// name it bears, and waits until it is.
func validating(t *testing.T, client kubernetes.Interface, namespace string, config admissionv1.WebhookClientConfig) {
	t.Helper()
	hooks := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	want := &admissionv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "hook.fairlead.dev", ClientConfig: config,
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			FailurePolicy:           ptr.To(admissionv1.Fail),
			TimeoutSeconds:          ptr.To[int32](callTimeout),
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.Patch(t.Context(), namespace, "application/apply-patch+yaml", data, metav1.PatchOptions{FieldManager: "test", Force: ptr.To(true)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hooks.Delete(background(t), namespace, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	eventually(t, "the webhook is in force", func() error {
		if err := tryConfigMap(t, client, namespace, "denied"); err == nil {
			return fmt.Errorf("a ConfigMap passes")
		}
		return nil
	})
}

func tryConfigMap(t *testing.T, client kubernetes.Interface, namespace, name string) error {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), configMap(name), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// refusedByWebhook waits for it: the API server takes a moment to hear of a Service, or of another CA.
func refusedByWebhook(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	refused(t, client, namespace, "denied", "the webhook says no")
}

func refused(t *testing.T, client kubernetes.Interface, namespace, name, says string) {
	t.Helper()
	eventually(t, "a ConfigMap is refused", func() error {
		if err := tryConfigMap(t, client, namespace, name); err == nil || !strings.Contains(err.Error(), says) {
			return fmt.Errorf("error is %v, want %q", err, says)
		}
		return nil
	})
}

// refusedByProxy is by localkube itself, which dials nobody for it: what is dialled in vain has another error.
func refusedByProxy(t *testing.T, client kubernetes.Interface, namespace, says string) {
	t.Helper()
	refused(t, client, namespace, "anything", says)
	if err := tryConfigMap(t, client, namespace, "anything"); !apierrors.IsInternalError(err) {
		t.Errorf("error is %v, want an internal one", err)
	}
}

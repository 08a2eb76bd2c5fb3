package rollout_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// certificates are the names of those that were asked for, without what all names begin with.
func (e *environment) certificates(ctx context.Context, m *v1alpha2.Materialize) (map[string]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("cert-manager.io/v1")
	list.SetKind("CertificateList")
	all := map[string]*unstructured.Unstructured{}
	err := e.List(ctx, list, client.InNamespace(e.namespace))
	for i := range list.Items {
		all[strings.TrimPrefix(list.Items[i].GetName(), "mz"+m.Status.ResourceID+"-")] = &list.Items[i]
	}
	return all, err
}

// TestCertificates: without cert-manager a certificate cannot be asked for, and that is said. When it comes, all goes on.
func TestCertificates(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(certificateCRD()), certificateCRD()); err == nil {
		t.Skip("an earlier run of this test has installed cert-manager in this cluster")
	}
	e := w.environment(t, func(m *v1alpha2.Materialize) {
		m.Spec.InternalCertificateSpec = &v1alpha2.CertificateSpec{IssuerRef: &v1alpha2.CertificateIssuerRef{Name: "ca"}}
	})
	if c := condition(e.says(t, v1alpha2.ReasonFailedDeploy)); !strings.Contains(c.Message, "cert-manager is not installed: install cert-manager, or remove") {
		t.Errorf("it says %s", c.Message)
	}
	for verb, code := range map[string]int{"status": 3, "plan": 1} {
		// It is broken into lines wherever it would be too wide.
		result := e.command(t, verb)
		if text := strings.Join(strings.Fields(result.Stdout), " "); result.Code != code || !strings.Contains(text, "cert-manager is not installed") {
			t.Errorf("%s ended with %d, want %d: %s%s", verb, result.Code, code, result.Stdout, result.Stderr)
		}
	}
	harness.Create(t, w, certificateCRD())
	m := e.serves(t, 1, "v1")
	hold := func(want ...string) map[string]*unstructured.Unstructured {
		var all map[string]*unstructured.Unstructured
		t.Helper()
		wait.Until(t, func(ctx context.Context) (err error) {
			if all, err = e.certificates(ctx, m); err != nil {
				return err
			}
			for _, name := range want {
				if all[name] == nil {
					return fmt.Errorf("there is no certificate %s", name)
				}
			}
			if len(all) != len(want) {
				return fmt.Errorf("there are %d certificates, want %v", len(all), want)
			}
			return nil
		})
		return all
	}
	hold("internal")

	// That of balancerd is no matter of a rollout. What somebody deletes comes back.
	e.edit(t, func(m *v1alpha2.Materialize) {
		m.Spec.BalancerdExternalCertificateSpec = &v1alpha2.CertificateSpec{DNSNames: []string{"sql.example"}, Duration: "24h"}
	})
	before := hold("internal", "balancerd-external")["balancerd-external"]
	if err := w.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error {
		all, err := e.certificates(ctx, m)
		if err != nil {
			return err
		}
		if now := all["balancerd-external"]; now == nil || now.GetUID() == before.GetUID() {
			return fmt.Errorf("it has not come back")
		}
		return nil
	})
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.BalancerdExternalCertificateSpec = nil })
	hold("internal")
	e.serves(t, 1, "v1")
}

// certificateCRD is as much of cert-manager as there has to be.
func certificateCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "certificates.cert-manager.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "cert-manager.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "certificates", Singular: "certificate", Kind: "Certificate", ListKind: "CertificateList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

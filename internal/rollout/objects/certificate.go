package objects

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// KindCertificate is cert-manager's.
var KindCertificate = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}

// The Certificates that a spec can require.
const (
	certificateInternal  = "internal"
	certificateBalancerd = "balancerd-external"
	certificateConsole   = "console-external"
)

func (n Names) certificateSecret(which string) string { return n.Of(which) + "-tls" }

// certificates are those that any of the specs requires. The internal one stays as long as a generation uses it.
func certificates(m *v1alpha2.Materialize, specs []*v1alpha2.MaterializeSpec) []*unstructured.Unstructured {
	n := NamesOf(m)
	var internal *v1alpha2.CertificateSpec
	for _, spec := range specs {
		if internal == nil {
			internal = spec.InternalCertificateSpec
		}
	}
	var all []*unstructured.Unstructured
	add := func(which, app string, spec *v1alpha2.CertificateSpec, services ...string) {
		if spec != nil {
			all = append(all, certificate(n, which, app, *spec, services))
		}
	}
	add(certificateInternal, AppEnvironmentd, internal, n.Environmentd(), n.Of(AppBalancerd))
	add(certificateBalancerd, AppBalancerd, m.Spec.BalancerdExternalCertificateSpec, n.Of(AppBalancerd))
	add(certificateConsole, AppConsole, m.Spec.ConsoleExternalCertificateSpec, n.Of(AppConsole))
	return all
}

func certificate(n Names, which, app string, asked v1alpha2.CertificateSpec, services []string) *unstructured.Unstructured {
	asked.DNSNames = slices.Clone(asked.DNSNames)
	for _, service := range services {
		if host := n.host(service); !slices.Contains(asked.DNSNames, host) {
			asked.DNSNames = append(asked.DNSNames, host)
		}
	}
	// The fields have the names that cert-manager gives them.
	spec := toMap(&asked)
	spec["secretName"] = n.certificateSecret(which)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(KindCertificate)
	u.SetName(n.Of(which))
	u.SetLabels(n.Labels(app))
	return u
}

// WithoutCertManager is the error of a spec that requires Certificates where cert-manager is not installed, nil if it
// requires none.
func WithoutCertManager(spec v1alpha2.MaterializeSpec) error {
	var fields []string
	for _, asked := range []struct {
		field string
		spec  *v1alpha2.CertificateSpec
	}{
		{"internalCertificateSpec", spec.InternalCertificateSpec},
		{"balancerdExternalCertificateSpec", spec.BalancerdExternalCertificateSpec},
		{"consoleExternalCertificateSpec", spec.ConsoleExternalCertificateSpec},
	} {
		if asked.spec != nil {
			fields = append(fields, asked.field)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fmt.Errorf("cert-manager is not installed, and the spec requires a Certificate in %s: install cert-manager, or remove those fields", strings.Join(fields, ", "))
}

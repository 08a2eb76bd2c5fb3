package desired

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// named are the fields of a hostname template.
type named struct{ Name, DisplayName, Namespace, Zone, Mesh string }

// Hostname returns the hostname that a HostnameGenerator gives a service.
func Hostname(generator *kumav1alpha1.HostnameGenerator, service metav1.Object, where ZoneInfo) (string, error) {
	wrong := func(err error) error {
		return fmt.Errorf("HostnameGenerator %s/%s: spec.template: %w", generator.Namespace, generator.Name, err)
	}
	label := func(name string) (string, error) {
		if value := service.GetLabels()[name]; value != "" {
			return value, nil
		}
		return "", fmt.Errorf("%s/%s has no label %s: add the label, or narrow the selector of the HostnameGenerator", service.GetNamespace(), service.GetName(), name)
	}
	parsed, err := template.New("hostname").Option("missingkey=error").Funcs(template.FuncMap{"label": label}).Parse(generator.Spec.Template)
	if err != nil {
		return "", wrong(fmt.Errorf("%w: write a template such as {{ .DisplayName }}.{{ .Namespace }}.mesh.local", err))
	}
	id := IdentityOf(service, where)
	var text hostname
	if err := parsed.Execute(&text, named{service.GetName(), id.Name, id.Namespace, id.Zone, MeshOf(service)}); err != nil {
		return "", wrong(fmt.Errorf("%w: a template can use .Name, .DisplayName, .Namespace, .Zone, .Mesh and label \"NAME\"", err))
	}
	if problems := validation.IsDNS1123Subdomain(text.String()); problems != nil {
		return "", wrong(fmt.Errorf("%q is not a hostname: %s", text.String(), strings.Join(problems, "; ")))
	}
	return text.String(), nil
}

// hostname limits the length of the text.
type hostname struct{ strings.Builder }

func (h *hostname) Write(text []byte) (int, error) {
	if h.Len()+len(text) > validation.DNS1123SubdomainMaxLength {
		return 0, errors.New("too long")
	}
	return h.Builder.Write(text)
}

// CheckTemplate returns why the template of a HostnameGenerator cannot be parsed.
func CheckTemplate(generator *kumav1alpha1.HostnameGenerator) error {
	_, err := template.New("hostname").Funcs(template.FuncMap{"label": func(string) string { return "" }}).Parse(generator.Spec.Template)
	if err != nil {
		return fmt.Errorf("spec.template: %w: write a template such as {{ .DisplayName }}.{{ .Namespace }}.mesh.local", err)
	}
	return nil
}

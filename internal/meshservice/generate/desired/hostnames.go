package desired

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// named are the fields of a hostname template.
type named struct{ Name, DisplayName, Namespace, Zone, Mesh string }

// Addresses returns the addresses that the HostnameGenerators give a service, in the order of their names, and the reason and text
// of a problem with any. The owner of a hostname is the service that has it by precedence, empty if there is none. The rules are
// those of the namespace of the service; it keeps hostnames that it has already.
func Addresses(service metav1.Object, has []kumav1alpha1.Address, generators []*kumav1alpha1.HostnameGenerator, rules NamespaceRules, where ZoneInfo,
	owner func(hostname string) string,
) (addresses []kumav1alpha1.Address, reason, problem string) {
	labels := LabelsOf(service, where)
	_, multiZone := service.(*kumav1alpha1.MeshMultiZoneService)
	byName := func(a, b *kumav1alpha1.HostnameGenerator) int { return strings.Compare(a.Name, b.Name) }
	for _, generator := range slices.SortedFunc(slices.Values(generators), byName) {
		selector := generator.Spec.Selector.MeshService
		if multiZone {
			selector = generator.Spec.Selector.MeshMultiZoneService
		}
		// Only the mesh owner, who writes in the system namespace, names services.
		if generator.Namespace != where.SystemNamespace || selector == nil || !selector.Matches(labels) {
			continue
		}
		hostname, err := hostnameOf(generator, service, where)
		if err != nil {
			reason, problem = kumav1alpha1.ReasonBadTemplate, err.Error()
			continue
		}
		named := func(a kumav1alpha1.Address) bool { return a.Hostname == hostname }
		if !IsTrusted(service, where) && !rules.allowsHostname(hostname, service.GetNamespace()) && !slices.ContainsFunc(has, named) {
			reason = kumav1alpha1.ReasonHostnameNotAllowed
			problem = fmt.Sprintf("hostname %s is not one of namespace %s: use {{ .Namespace }} in the template of HostnameGenerator %s/%s, or add %s to the annotation %s of Namespace %s",
				hostname, service.GetNamespace(), generator.Namespace, generator.Name, hostname, kumav1alpha1.AnnotationAllowedHostnames, service.GetNamespace())
			continue
		}
		if older := owner(hostname); older != "" {
			reason = kumav1alpha1.ReasonHostnameCollision
			problem = fmt.Sprintf("hostname %s belongs to %s, which takes precedence: change the template or the selector of HostnameGenerator %s/%s",
				hostname, older, generator.Namespace, generator.Name)
			continue
		}
		if !slices.ContainsFunc(addresses, named) {
			addresses = append(addresses, kumav1alpha1.Address{
				Hostname: hostname, Origin: kumav1alpha1.OriginHostnameGenerator,
				HostnameGeneratorRef: kumav1alpha1.HostnameGeneratorRef{CoreName: generator.Name + "." + generator.Namespace},
			})
		}
	}
	return addresses, reason, problem
}

// hostnameOf returns the hostname that a HostnameGenerator gives a service.
func hostnameOf(generator *kumav1alpha1.HostnameGenerator, service metav1.Object, where ZoneInfo) (string, error) {
	wrong := func(err error) error {
		return fmt.Errorf("HostnameGenerator %s/%s: spec.template: %w", generator.Namespace, generator.Name, err)
	}
	label := func(name string) (string, error) {
		if value := service.GetLabels()[name]; value != "" {
			return value, nil
		}
		return "", fmt.Errorf("%s/%s has no label %s: add the label, or narrow the selector of the HostnameGenerator", service.GetNamespace(), service.GetName(), name)
	}
	parsed, err := parseTemplate(generator.Spec.Template, label)
	if err != nil {
		return "", wrong(err)
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

func parseTemplate(text string, label func(string) (string, error)) (*template.Template, error) {
	parsed, err := template.New("hostname").Option("missingkey=error").Funcs(template.FuncMap{"label": label}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: write a template such as {{ .DisplayName }}.{{ .Namespace }}.mesh.local", err)
	}
	return parsed, nil
}

// CheckTemplate returns why the template of a HostnameGenerator cannot be parsed.
func CheckTemplate(generator *kumav1alpha1.HostnameGenerator) error {
	if _, err := parseTemplate(generator.Spec.Template, nil); err != nil {
		return fmt.Errorf("spec.template: %w", err)
	}
	return nil
}

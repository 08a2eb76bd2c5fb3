package crds_test

import (
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/crds"
)

// crdBuilder makes CRDs of the made-up group harbour.test.
type crdBuilder struct {
	crd apiextensionsv1.CustomResourceDefinition
}

func makeCRD(plural string) *crdBuilder {
	kind := strings.ToUpper(plural[:1]) + plural[1:len(plural)-1]
	return &crdBuilder{crd: apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".harbour.test", Annotations: map[string]string{}, Labels: map[string]string{}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "harbour.test",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Scope: apiextensionsv1.ClusterScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"name": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"Fair Lead"`)}},
						}},
					},
				}},
			}},
		},
	}}
}

func (b *crdBuilder) Obj() *apiextensionsv1.CustomResourceDefinition { return b.crd.DeepCopy() }

func (b *crdBuilder) Schema(version int) *crdBuilder {
	b.crd.Annotations[crds.SchemaVersionAnnotation] = strconv.Itoa(version)
	return b
}

func (b *crdBuilder) Field(name string) *crdBuilder {
	b.crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	return b
}

// Next adds a version after which objects are stored, like the first but for a field of its own.
func (b *crdBuilder) Next(name, field string) *crdBuilder {
	next := b.crd.Spec.Versions[0].DeepCopy()
	next.Name, next.Served, next.Storage = name, true, true
	if field != "" {
		next.Schema.OpenAPIV3Schema.Properties["spec"].Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	for i := range b.crd.Spec.Versions {
		b.crd.Spec.Versions[i].Storage = false
	}
	b.crd.Spec.Versions = append(b.crd.Spec.Versions, *next)
	return b
}

func (b *crdBuilder) ShortName(name string) *crdBuilder {
	b.crd.Spec.Names.ShortNames = []string{name}
	return b
}

func (b *crdBuilder) Webhook() *crdBuilder {
	url := "https://127.0.0.1:9443/convert"
	b.crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	return b
}

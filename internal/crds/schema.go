package crds

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// needsWebhook tells whether objects lose or change fields between two versions of a CRD. Where all versions have the same
// schema they do not, and the API server converts them itself.
func needsWebhook(crd *apiextensionsv1.CustomResourceDefinition) bool {
	first := schemaOf(crd.Spec.Versions[0])
	for _, version := range crd.Spec.Versions[1:] {
		if !equality.Semantic.DeepEqual(first, schemaOf(version)) {
			return true
		}
	}
	return false
}

// schemaOf is the schema of a version without its descriptions.
func schemaOf(version apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil {
		return nil
	}
	schema := version.Schema.OpenAPIV3Schema.DeepCopy()
	removeDescriptions(schema)
	return schema
}

func removeDescriptions(schema *apiextensionsv1.JSONSchemaProps) {
	if schema == nil {
		return
	}
	schema.Description = ""
	for name, property := range schema.Properties {
		removeDescriptions(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		removeDescriptions(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil {
		removeDescriptions(schema.AdditionalProperties.Schema)
	}
}

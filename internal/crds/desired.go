package crds

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// desiredCRD is a CRD as it should be in the cluster, given the live one (nil if there is none) and the conversion of its
// objects (nil if unknown). Without a webhook the API server would take an object of one version for one of another, and
// lose fields. So without one, only the stored version is served, and objects that are stored in another version block the
// change; the second result says so.
func desiredCRD(live, want *apiextensionsv1.CustomResourceDefinition, conversion *apiextensionsv1.CustomResourceConversion) (*apiextensionsv1.CustomResourceDefinition, string) {
	if !needsWebhook(want) {
		return want, ""
	}
	shaped := want.DeepCopy()
	if conversion != nil {
		shaped.Spec.Conversion = conversion
		return shaped, ""
	}
	if live != nil {
		if _, ours := schemaVersion(live); ours && clientConfigOf(live.Spec.Conversion) != nil {
			return shaped, ""
		}
		storage := storageVersion(want)
		if others := storedOtherThan(live, storage); len(others) > 0 {
			return shaped, fmt.Sprintf("objects are stored as %s, and only a webhook converts them to %s", strings.Join(others, ", "), storage)
		}
	}
	serveStoredOnly(shaped)
	return shaped, ""
}

// withoutWebhook is the outcome of a decision that is blocked because there is no webhook.
func withoutWebhook(outcome Outcome, message, hold string) (Outcome, string) {
	switch outcome {
	case TakenOver:
		return outcome, message + "; the operator brings its new schema, because " + hold
	case Updated, Repaired:
		return NeedsWebhook, hold
	}
	return outcome, message
}

func serveStoredOnly(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		version.Served = version.Storage
	}
}

func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

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

package crds

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// shape is a CRD as it is wanted where live is (nil if there is none), given how its objects are converted (nil if that
// is not known). Objects are then safe: without a webhook, the API server would take an object of one version for one of
// another, and lose what only one of them has. So without one, only the version is served that is stored, and what is
// stored in another version holds up the change; the second result says so.
func shape(live, want *apiextensionsv1.CustomResourceDefinition, conversion *apiextensionsv1.CustomResourceConversion) (*apiextensionsv1.CustomResourceDefinition, string) {
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
		if others := slices.DeleteFunc(slices.Clone(live.Status.StoredVersions), func(v string) bool { return v == storage }); len(others) > 0 {
			return shaped, fmt.Sprintf("objects are stored as %s, and only a webhook converts them to %s", strings.Join(others, ", "), storage)
		}
	}
	serveStoredOnly(shaped)
	return shaped, ""
}

// held is what becomes of a decision that cannot be carried out for want of a webhook.
func held(outcome Outcome, message, hold string) (Outcome, string) {
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

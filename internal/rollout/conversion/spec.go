package conversion

import (
	"fmt"
	"maps"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// upgradeSpec gives a spec of v1alpha1 in v1alpha2, and leaves the given one as it is.
func upgradeSpec(was map[string]any) (map[string]any, error) {
	spec := maps.Clone(was)
	delete(spec, "requestRollout")
	delete(spec, "inPlaceRollout")
	delete(spec, "environmentdIamRoleArn")
	if promote := spec["forcePromote"]; promote == "" || promote == string(v1alpha2.NilUUID) {
		delete(spec, "forcePromote")
	}

	arn, isText := was["environmentdIamRoleArn"].(string)
	if !isText && was["environmentdIamRoleArn"] != nil {
		return nil, fmt.Errorf("spec.environmentdIamRoleArn is %s: make it text", jsonTypeOf(was["environmentdIamRoleArn"]))
	}
	if arn == "" {
		return spec, nil
	}
	annotations, err := child(spec, "serviceAccountAnnotations")
	if err != nil {
		return nil, fmt.Errorf("in spec: %w", err)
	}
	if annotations[v1alpha2.AnnotationRoleArn] != nil {
		return spec, nil
	}
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[v1alpha2.AnnotationRoleArn] = arn
	spec["serviceAccountAnnotations"] = annotations
	return spec, nil
}

// isWholeObject tells an object from the fields that one manager has applied: the API server accepts no object without these
// two.
func isWholeObject(spec map[string]any) bool {
	return spec["environmentdImageRef"] != nil && spec["backendSecretName"] != nil
}

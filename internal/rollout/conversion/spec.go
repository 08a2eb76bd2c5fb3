package conversion

import (
	"fmt"
	"maps"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// upgradeSpec gives a spec of v1alpha1 in v1alpha2, with what v1alpha2 has no place for, and leaves the given one as it is.
// The role is what environmentdIamRoleArn and serviceAccountAnnotations had in common, empty if nothing.
func upgradeSpec(was map[string]any, role string) (map[string]any, *preserved, error) {
	spec, rest := maps.Clone(was), &preserved{}
	for _, field := range []string{requestRollout, inPlaceRollout} {
		if value := was[field]; value != nil {
			rest.keep(field, value)
		}
		delete(spec, field)
	}
	if promote := was[forcePromote]; isNoPromotion(promote) {
		rest.keep(forcePromote, promote)
		delete(spec, forcePromote)
	}
	delete(spec, environmentdIamRoleArn)
	if err := upgradeRole(spec, rest, was[environmentdIamRoleArn], role); err != nil {
		return nil, nil, err
	}
	return spec, rest, nil
}

// upgradeRole moves environmentdIamRoleArn to serviceAccountAnnotations. A role that is there already wins, unless it is the
// one that was moved there before: then environmentdIamRoleArn has been changed, and it has not.
//
// Without environmentdIamRoleArn the role stays. Whoever has applied it in v1alpha1 and applies v1alpha2 with the same field
// manager gives up environmentdIamRoleArn and not the role, and the API server has that converted as if it were v1alpha1.
func upgradeRole(spec map[string]any, rest *preserved, written any, moved string) error {
	if written == nil {
		return nil
	}
	arn, ok := written.(string)
	if !ok {
		return fmt.Errorf("spec.environmentdIamRoleArn is %s: make it text", jsonTypeOf(written))
	}
	annotations, err := child(spec, serviceAccountAnnotations)
	if err != nil {
		return fmt.Errorf("in spec: %w", err)
	}
	role := annotations[v1alpha2.AnnotationRoleArn]
	isMoved := moved != "" && role == moved
	if arn == "" || role != nil && role != arn && !isMoved {
		rest.keep(environmentdIamRoleArn, arn)
		if !isMoved {
			return nil
		}
	}
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]any{}
	}
	if rest.Role = arn; arn == "" {
		delete(annotations, v1alpha2.AnnotationRoleArn)
	} else {
		annotations[v1alpha2.AnnotationRoleArn] = arn
	}
	spec[serviceAccountAnnotations] = annotations
	return nil
}

// isWholeObject tells an object from the fields that one manager has applied: the API server accepts no object without these
// two.
func isWholeObject(spec map[string]any) bool {
	return spec["environmentdImageRef"] != nil && spec["backendSecretName"] != nil
}

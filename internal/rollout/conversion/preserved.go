package conversion

import (
	"encoding/json"
	"maps"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

const (
	requestRollout            = "requestRollout"
	inPlaceRollout            = "inPlaceRollout"
	environmentdIamRoleArn    = "environmentdIamRoleArn"
	forcePromote              = "forcePromote"
	serviceAccountAnnotations = "serviceAccountAnnotations"
)

// preservedVersion is that of the schema of the annotation.
const preservedVersion = 1

// preserved is what a spec of v1alpha1 says that a spec of v1alpha2 has no place for. It is in
// v1alpha2.AnnotationV1alpha1, which the object has in both versions: in v1alpha1 it tells a role that was changed from one
// that was moved.
type preserved struct {
	// Version of this schema. An annotation of another version is kept as it is, and not read.
	Version int `json:"version"`
	// Spec has fields of v1alpha1 as they were written.
	Spec map[string]any `json:"spec,omitempty"`
	// Role is what environmentdIamRoleArn and the role in serviceAccountAnnotations were when they were the same.
	Role string `json:"role,omitempty"`
	// Completed is the request of the last rollout that was completed, while the current one is not.
	Completed *completedRollout `json:"completed,omitempty"`
}

// completedRollout is a request, and the lastCompletedRolloutHash that the status had with it: with another hash, another rollout
// was completed since.
type completedRollout struct {
	Request string `json:"request"`
	Hash    string `json:"hash,omitempty"`
}

func (p *preserved) keep(field string, value any) {
	if p.Spec == nil {
		p.Spec = map[string]any{}
	}
	p.Spec[field] = value
}

func (p *preserved) isEmpty() bool { return len(p.Spec) == 0 && p.Role == "" && p.Completed == nil }

// String is the annotation, empty if there is nothing to preserve.
func (p *preserved) String() string {
	if p.isEmpty() {
		return ""
	}
	p.Version = preservedVersion
	text, err := json.Marshal(p)
	if err != nil {
		// The values are those of JSON.
		panic(err)
	}
	return string(text)
}

// readPreserved reads the annotation. It is nil if there is none, or none that this version of Fairlead can read.
func readPreserved(metadata any) *preserved {
	text, found := annotationOf(metadata, v1alpha2.AnnotationV1alpha1)
	p := &preserved{}
	if !found || json.Unmarshal([]byte(text), p) != nil || p.Version != preservedVersion {
		return nil
	}
	return p
}

// restore gives a spec of v1alpha2 the fields that it had in v1alpha1, and leaves the given one as it is. What v1alpha2 says
// comes first: a role that was changed or removed there is read as changed or removed here, and p follows.
func (p *preserved) restore(was map[string]any) map[string]any {
	spec := maps.Clone(was)
	if spec == nil {
		spec = map[string]any{}
	}
	if request, ok := p.Spec[requestRollout].(string); ok {
		spec[requestRollout] = request
	}
	if inPlace, ok := p.Spec[inPlaceRollout].(bool); ok {
		spec[inPlaceRollout] = inPlace
	}
	if promote := p.Spec[forcePromote]; spec[forcePromote] == nil && isNoPromotion(promote) {
		spec[forcePromote] = promote
	}
	annotations, _ := spec[serviceAccountAnnotations].(map[string]any)
	role := annotations[v1alpha2.AnnotationRoleArn]
	arn, written := p.Spec[environmentdIamRoleArn].(string)
	switch {
	case p.Role != "":
		if p.Role, _ = role.(string); p.Role != "" {
			spec[environmentdIamRoleArn] = p.Role
		}
	case written && (arn == "" || role != nil):
		spec[environmentdIamRoleArn] = arn
	}
	if was == nil && len(spec) == 0 {
		return nil
	}
	return spec
}

// isNoPromotion: v1alpha1 has two values of forcePromote that mean none.
func isNoPromotion(promote any) bool { return promote == "" || promote == string(v1alpha2.NilUUID) }

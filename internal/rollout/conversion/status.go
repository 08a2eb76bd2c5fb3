package conversion

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

const (
	lastCompletedRolloutRequest = "lastCompletedRolloutRequest"
	resourcesHash               = "resourcesHash"
	lastCompletedRolloutHash    = "lastCompletedRolloutHash"
	requestedRolloutHash        = "requestedRolloutHash"
	rolloutHashVersion          = "rolloutHashVersion"
	lastCompletedImage          = "lastCompletedRolloutEnvironmentdImageRef"
)

// v1alpha1StatusFields are the fields that a status had when v1alpha1 was reconciled. There will never be more.
var v1alpha1StatusFields = []string{
	"activeGeneration", "conditions", lastCompletedImage, "resourceId",
	lastCompletedRolloutRequest, resourcesHash,
}

// isV1alpha1Status tells a status that was written when v1alpha1 was reconciled from one of v1alpha2 that was converted.
// Only the former is translated; the latter is carried as it is, whatever the spec beside it says.
func isV1alpha1Status(status map[string]any) bool {
	switch {
	case hasAny(status, lastCompletedRolloutHash, requestedRolloutHash, rolloutHashVersion):
		return false
	case hasAny(status, lastCompletedRolloutRequest, resourcesHash):
		return true
	}
	for name := range status {
		if !slices.Contains(v1alpha1StatusFields, name) {
			return false
		}
	}
	return len(status) > 0
}

// markV1alpha2Status marks a status of v1alpha2 that looks like one of v1alpha1, for the conversion back: its hashes have no
// version.
func markV1alpha2Status(status map[string]any) map[string]any {
	marked := maps.Clone(status)
	marked[rolloutHashVersion] = int64(0)
	return marked
}

// upgradeStatus removes the fields that only v1alpha1 has, and the mark.
func upgradeStatus(was map[string]any) map[string]any {
	status := maps.Clone(was)
	delete(status, lastCompletedRolloutRequest)
	delete(status, resourcesHash)
	if !isNonZero(status[rolloutHashVersion]) {
		delete(status, rolloutHashVersion)
	}
	return status
}

// rolloutHashes translates a status of v1alpha1 to hashes. A promotion has to be completed, and its spec is unknown, so it
// gets no requested hash.
//
// The status may be older than the spec beside it: a write through v1alpha1 to an object that is stored as v1alpha1 is
// converted only after the API server has put the new spec beside the old status. So the spec counts as rolled out only if
// the status is about that very spec.
func rolloutHashes(generation int64, spec, status map[string]any, hashed func() (string, error)) (map[string]any, error) {
	history := map[string]any{rolloutHashVersion: int64(hash.Version)}
	completed := isRolloutComplete(spec, status) && isAboutSpec(generation, spec, status)
	if !completed && promoting(status) {
		return history, nil
	}
	current, err := hashed()
	if err != nil {
		return nil, err
	}
	history[requestedRolloutHash] = current
	if completed {
		history[lastCompletedRolloutHash] = current
	}
	return history, nil
}

// isRolloutComplete: the rollout that was requested last is complete. No request is the nil UUID, which also stands for the
// last one before the first.
func isRolloutComplete(spec, status map[string]any) bool {
	completed, _ := status[lastCompletedRolloutRequest].(string)
	requested, _ := spec["requestRollout"].(string)
	if completed == string(v1alpha2.NilUUID) && !isNonZero(status["activeGeneration"]) {
		return false
	}
	return completed != "" && strings.EqualFold(cmp.Or(requested, string(v1alpha2.NilUUID)), completed)
}

// isAboutSpec tells whether nothing in a status of v1alpha1 shows that the spec was edited since the last rollout.
func isAboutSpec(generation int64, spec, status map[string]any) bool {
	if image := status[lastCompletedImage]; isText(image) && image != spec["environmentdImageRef"] {
		return false
	}
	condition := upToDateCondition(status)
	if condition == nil {
		return true
	}
	observed := integer(condition["observedGeneration"])
	return condition["status"] == "True" && (observed == 0 || observed >= generation)
}

// keepCompleted preserves the completed request of a status of v1alpha1, unless the status of v1alpha2 tells that the current one is.
func (p *preserved) keepCompleted(metadata any, spec, status, upgraded map[string]any) {
	request, _ := status[lastCompletedRolloutRequest].(string)
	if request == "" || !isWholeObject(spec) || isCurrent(metadata, upgraded) && isText(spec[requestRollout]) {
		return
	}
	hash, _ := upgraded[lastCompletedRolloutHash].(string)
	p.Completed = &completedRollout{Request: request, Hash: hash}
}

// completedRequest is lastCompletedRolloutRequest of an object of v1alpha2: the current request if its spec is rolled out, or else the
// one before; empty if that is not known. The status is marked already: with the field, one without a mark would pass for one of
// v1alpha1.
func (p *preserved) completedRequest(metadata any, spec, status map[string]any) string {
	if !isWholeObject(spec) || !hasAny(status, lastCompletedRolloutHash, requestedRolloutHash, rolloutHashVersion) {
		return ""
	}
	if request, _ := spec[requestRollout].(string); request != "" && isCurrent(metadata, status) {
		return request
	}
	if hash, _ := status[lastCompletedRolloutHash].(string); p.Completed != nil && p.Completed.Hash == hash {
		return p.Completed.Request
	}
	return ""
}

// isCurrent tells whether a status of v1alpha2 says of the latest spec that it is rolled out.
func isCurrent(metadata any, status map[string]any) bool {
	condition := upToDateCondition(status)
	if condition["status"] != "True" || !isText(status[lastCompletedRolloutHash]) {
		return false
	}
	observed := integer(condition["observedGeneration"])
	return observed > 0 && observed >= objectMetaOf(metadata).Generation
}

func promoting(status map[string]any) bool {
	return upToDateCondition(status)["reason"] == string(v1alpha2.ReasonPromoting)
}

// upToDateCondition is that condition, nil if there is none.
func upToDateCondition(status map[string]any) map[string]any {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if condition, _ := c.(map[string]any); condition["type"] == v1alpha2.ConditionUpToDate {
			return condition
		}
	}
	return nil
}

func isText(value any) bool {
	text, ok := value.(string)
	return ok && text != ""
}

func integer(number any) int64 {
	switch number := number.(type) {
	case int64:
		return number
	case float64:
		return int64(number)
	}
	return 0
}

func isNonZero(number any) bool {
	return number != nil && number != int64(0) && number != float64(0)
}

func hasAny(object map[string]any, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return object[name] != nil })
}

package conversion

import (
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
)

// original are the fields that a status had when v1alpha1 was reconciled. There will never be more.
var original = []string{
	"activeGeneration", "conditions", "lastCompletedRolloutEnvironmentdImageRef", "resourceId",
	lastCompletedRolloutRequest, resourcesHash,
}

// native tells a status from the time when v1alpha1 was reconciled from one of v1alpha2 that came through it. Only the
// first kind is translated: the other one travels as it is, whatever the spec beside it says by now.
func native(status map[string]any) bool {
	switch {
	case hasAny(status, lastCompletedRolloutHash, requestedRolloutHash, rolloutHashVersion):
		return false
	case hasAny(status, lastCompletedRolloutRequest, resourcesHash):
		return true
	}
	for name := range status {
		if !slices.Contains(original, name) {
			return false
		}
	}
	return len(status) > 0
}

// disown marks a status of v1alpha2 that looks like a native one of v1alpha1, for the way back: its hashes are of no version.
func disown(status map[string]any) map[string]any {
	marked := maps.Clone(status)
	marked[rolloutHashVersion] = int64(0)
	return marked
}

// upgradeStatus leaves behind what only v1alpha1 has, and the mark.
func upgradeStatus(was map[string]any) map[string]any {
	status := maps.Clone(was)
	delete(status, lastCompletedRolloutRequest)
	delete(status, resourcesHash)
	if !some(status[rolloutHashVersion]) {
		delete(status, rolloutHashVersion)
	}
	return status
}

// historyOf is what a native status tells in terms of hashes. A rollout that is promoting already has to come to its end,
// and nobody knows the spec that it is of, so there is no hash that was requested.
func historyOf(spec, status map[string]any, hashed func() (string, error)) (map[string]any, error) {
	history := map[string]any{rolloutHashVersion: int64(hash.Version)}
	completed := atRest(spec, status)
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

// atRest: the rollout that was asked for last was completed. To ask for none is to ask for the nil UUID, which is also what
// stands for the last one before there was any.
func atRest(spec, status map[string]any) bool {
	completed, _ := status[lastCompletedRolloutRequest].(string)
	requested, _ := spec["requestRollout"].(string)
	if requested == "" {
		requested = string(v1alpha2.NilUUID)
	}
	if completed == string(v1alpha2.NilUUID) && !some(status["activeGeneration"]) {
		return false
	}
	return completed != "" && strings.EqualFold(requested, completed)
}

func promoting(status map[string]any) bool {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == v1alpha2.ConditionUpToDate && condition["reason"] == string(v1alpha2.ReasonPromoting) {
			return true
		}
	}
	return false
}

// some is a number other than zero.
func some(number any) bool {
	return number != nil && number != int64(0) && number != float64(0)
}

func hasAny(object map[string]any, names ...string) bool {
	for _, name := range names {
		if object[name] != nil {
			return true
		}
	}
	return false
}

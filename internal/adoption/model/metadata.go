package model

import (
	"maps"
	"slices"
)

// MergeKeys are labels or annotations: those of others, but for the ones that were ours and are no longer asked for, and ours.
func MergeKeys(live map[string]string, before []string, ours ...map[string]string) map[string]string {
	all := maps.Clone(live)
	if all == nil {
		all = map[string]string{}
	}
	maps.DeleteFunc(all, func(key, _ string) bool { return slices.Contains(before, key) })
	for _, more := range ours {
		maps.Copy(all, more)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

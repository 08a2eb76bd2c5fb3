package model

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// AddFinalizer keeps an object until it is removed. It is that of controllerutil, for planners, which import no client.
func AddFinalizer(object metav1.Object, finalizer string) {
	if !slices.Contains(object.GetFinalizers(), finalizer) {
		object.SetFinalizers(append(object.GetFinalizers(), finalizer))
	}
}

package model

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MergeKeys are the live labels or annotations without the keys that we owned before, and with ours.
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

// AddFinalizer is that of controllerutil, for planners, which import no client.
func AddFinalizer(object metav1.Object, finalizer string) {
	if !slices.Contains(object.GetFinalizers(), finalizer) {
		object.SetFinalizers(append(object.GetFinalizers(), finalizer))
	}
}

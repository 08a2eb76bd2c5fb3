package controlplane

import (
	"slices"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

const istiodSuffix = "-istiod"

// istiodRelease is the Helm release of a revision's control plane.
func istiodRelease(revision string) string { return revision + istiodSuffix }

// chartRevision is the name by which the charts know a revision: the default one has none.
func chartRevision(name string) string {
	if name == v1.DefaultRevision {
		return ""
	}
	return name
}

// Values for a chart: those of the user, overridden by those that Fairlead owns.
func Values(revision *v1.IstioRevision) map[string]any {
	values := map[string]any(revision.Spec.Values.DeepCopy())
	if values == nil {
		values = map[string]any{}
	}
	// The charts have no file for the profile that they are by themselves.
	if slices.Contains([]any{"default", ""}, values["profile"]) {
		delete(values, "profile")
	}
	values["revision"] = chartRevision(revision.Name)
	global, _ := values["global"].(map[string]any)
	if global == nil {
		global = map[string]any{}
	}
	global["istioNamespace"] = revision.Spec.Namespace
	values["global"] = global
	return values
}

// NameHolder tells whether a tag holds a name that a revision has as well: the older of the two does. Created within one
// second, the tag does if only the tag has been installed.
func NameHolder(revision *v1.IstioRevision, tag *v1.IstioRevisionTag) (heldByTag bool) {
	switch {
	case tag.CreationTimestamp.Before(&revision.CreationTimestamp):
		return true
	case revision.CreationTimestamp.Before(&tag.CreationTimestamp):
		return false
	}
	return tag.Status.IstioRevision != "" && !slices.Contains(revision.Finalizers, v1.FinalizerUninstall)
}

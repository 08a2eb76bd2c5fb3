package generate

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// generationStatus compares the MeshServices of a mesh with the desired ones: pending ones are not generated yet, blocked
// ones exist unmanaged, nameless ones have no valid name.
type generationStatus struct {
	total, generated           int
	pending, blocked, nameless []string
}

// compare compares a desired MeshService with the existing one. Without a status it has no VIPs yet, so it is pending.
func (c *generationStatus) compare(want, there *kumav1alpha1.MeshService, where desired.ZoneInfo) {
	name := want.Namespace + "/" + want.Name
	switch {
	case there == nil:
		c.pending = append(c.pending, name)
	case !desired.IsGenerated(there, where) || !sameOwner(there, want):
		c.blocked = append(c.blocked, name)
	case there.DeletionTimestamp != nil || desired.MeshOf(there) != desired.MeshOf(want) || there.Status.ObservedGeneration == 0:
		c.pending = append(c.pending, name)
	}
}

func (c *generationStatus) condition(mode kumav1alpha1.Mode) metav1.Condition {
	condition := metav1.Condition{Type: kumav1alpha1.ConditionGenerated, Status: metav1.ConditionFalse}
	for _, names := range [][]string{c.pending, c.blocked, c.nameless} {
		slices.Sort(names)
	}
	switch {
	case mode == kumav1alpha1.ModeDisabled && c.generated > 0:
		condition.Reason = kumav1alpha1.ReasonDisabled
		condition.Message = fmt.Sprintf("meshServices is Disabled: %s to delete", countText(c.generated, "generated MeshService"))
	case mode == kumav1alpha1.ModeDisabled:
		condition.Reason, condition.Message = kumav1alpha1.ReasonDisabled, "meshServices is Disabled: no MeshService is generated"
	case len(c.blocked) > 0:
		condition.Reason = kumav1alpha1.ReasonUnmanaged
		condition.Message = fmt.Sprintf("%s not managed by Fairlead: %s; delete those that Fairlead should generate",
			countText(len(c.blocked), "MeshService"), namesText(c.blocked))
	case len(c.nameless) > 0:
		condition.Reason = ReasonInvalidName
		condition.Message = fmt.Sprintf("%s of kuma.io/service not valid as a MeshService name: %s; use at most 63 lower-case letters, digits and '-'",
			countText(len(c.nameless), "value"), namesText(c.nameless))
	case len(c.pending) > 0:
		condition.Reason = kumav1alpha1.ReasonGenerating
		condition.Message = fmt.Sprintf("%s not generated yet: %s", countText(len(c.pending), "MeshService"), namesText(c.pending))
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, kumav1alpha1.ReasonGenerated
		condition.Message = fmt.Sprintf("%s, %d of them generated", countText(c.total, "MeshService"), c.generated)
	}
	return condition
}

// nextMode is the mode for the status, from which Mesh.ModeInForce decides what proxies get. A mesh leaves Disabled when all
// MeshServices are generated or generation has stalled, so that proxies change once. Exclusive starts when nothing is
// missing, since it removes the tags; it is not left for a new Service, which would bring all tags back.
func (c *generationStatus) nextMode(mesh *kumav1alpha1.Mesh, stalled bool) kumav1alpha1.Mode {
	mode, was := mesh.Mode(), mesh.Status.Mode
	if mode != kumav1alpha1.ModeDisabled && was == kumav1alpha1.ModeDisabled && len(c.pending) > 0 && !stalled {
		return kumav1alpha1.ModeDisabled
	}
	if mode != kumav1alpha1.ModeExclusive || len(c.pending)+len(c.blocked)+len(c.nameless) == 0 {
		return mode
	}
	if was == mode && (mesh.Status.ObservedGeneration == mesh.Generation || len(c.pending) == 0) {
		return mode
	}
	return kumav1alpha1.ModeEverywhere
}

// stallTimeout is how long a mesh that leaves Disabled waits for the next MeshService.
const stallTimeout = 10 * time.Second

// stallDetector tracks, by mesh, how many MeshServices are missing and since when.
type stallDetector map[string]stall

type stall struct {
	lacking int
	since   time.Time
}

// stalled says whether the number of missing MeshServices has not changed for stallTimeout, and when to look again.
func (w stallDetector) stalled(mesh string, lacking int, now time.Time) (stalled bool, again time.Duration) {
	if lacking == 0 {
		delete(w, mesh)
		return false, 0
	}
	if w[mesh].lacking != lacking {
		w[mesh] = stall{lacking, now}
	}
	left := stallTimeout - now.Sub(w[mesh].since)
	return left <= 0, max(left, 0)
}

// sameOwner says whether two MeshServices have the same owner, or in universal the same service and mesh.
func sameOwner(a, b *kumav1alpha1.MeshService) bool {
	one, other := metav1.GetControllerOf(a), metav1.GetControllerOf(b)
	if one == nil || other == nil {
		return one == other && desired.MeshOf(a) == desired.MeshOf(b) &&
			a.Labels[kumav1alpha1.LabelDisplayName] == b.Labels[kumav1alpha1.LabelDisplayName]
	}
	return one.Kind == other.Kind && one.Name == other.Name
}

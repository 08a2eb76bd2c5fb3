package consumers

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// gates are the reasons to start nothing, in order.
var gates = []passage.Gate[*planner]{
	whileIntentIsInvalid,
	whileWithdrawn,
	whilePaused,
	whileNotServed,
	whileModeIsUnsuitable,
	whileModeNotInForce,
	whileNotGenerated,
	whileNoMeshServices,
}

func whileIntentIsInvalid(p *planner) *passage.Reason {
	if p.invalid == nil {
		return nil
	}
	return passage.Hold(kumav1alpha1.ReasonInvalidIntent, "%v", p.invalid)
}

func whileWithdrawn(p *planner) *passage.Reason {
	if p.intent != nil {
		return nil
	}
	return passage.Hold(kumav1alpha1.ReasonWithdrawn, "the annotation %s is removed: switched consumers stay switched, and no batch starts; "+
		"continue with `fairlead migrate mesh %s`, or revert with --revert", kumav1alpha1.AnnotationMigrate, p.Mesh.Name)
}

func whilePaused(p *planner) *passage.Reason {
	if p.Mesh.Annotations[fairlead.AnnotationPaused] != "true" {
		return nil
	}
	return passage.Hold(kumav1alpha1.ReasonPaused, "paused by annotation %s; resume with `fairlead resume mesh %s`",
		fairlead.AnnotationPaused, p.Mesh.Name)
}

func whileNotServed(p *planner) *passage.Reason {
	if p.Serving {
		return nil
	}
	return passage.Hold(kumav1alpha1.ReasonNotServed,
		"xDS serving is disabled, so acknowledgements cannot be observed; start the operator with --mesh-bind-address, or set mesh.serving.enabled of the chart")
}

func whileModeIsUnsuitable(p *planner) *passage.Reason {
	return ModeHold(p.Mesh, p.record.Revert)
}

// ModeHold is why the mode of a mesh leaves nothing to switch, or nil. Consumers can be reverted in any mode.
func ModeHold(mesh *kumav1alpha1.Mesh, revert bool) *passage.Reason {
	mode := mesh.Mode()
	switch {
	case revert, mode == kumav1alpha1.ModeReachableBackendRefs:
		return nil
	case mode == kumav1alpha1.ModeDisabled:
		return passage.Hold(kumav1alpha1.ReasonModeDisabled, "Mesh %s has no MeshServices to switch to: set spec.meshServices: %s",
			mesh.Name, kumav1alpha1.ModeReachableBackendRefs)
	}
	return passage.Hold(kumav1alpha1.ReasonModeReachesAll, "spec.meshServices of Mesh %s is %s: every consumer already reaches MeshServices; "+
		"set %s to switch consumers in batches", mesh.Name, mode, kumav1alpha1.ModeReachableBackendRefs)
}

func whileModeNotInForce(p *planner) *passage.Reason {
	status, mode := p.Mesh.Status, p.Mesh.Mode()
	if p.record.Revert || status.Mode == mode && status.ObservedGeneration >= p.Mesh.Generation {
		return nil
	}
	return passage.Hold(kumav1alpha1.ReasonModeNotInForce, "waiting for spec.meshServices: %s to be in force", mode)
}

func whileNotGenerated(p *planner) *passage.Reason {
	generated := meta.FindStatusCondition(p.Mesh.Status.Conditions, kumav1alpha1.ConditionGenerated)
	switch {
	case p.record.Revert:
		return nil
	case generated == nil || generated.ObservedGeneration != p.Mesh.Generation:
		return passage.Hold(kumav1alpha1.ReasonNotGenerated, "waiting for the MeshServices of Mesh %s to be generated", p.Mesh.Name)
	// A value without a MeshService stays a tag, which consumers reach in the mode that switches them.
	case generated.Status != metav1.ConditionTrue && generated.Reason != kumav1alpha1.ReasonInvalidName:
		return passage.Hold(kumav1alpha1.ReasonNotGenerated, "waiting for the MeshServices of Mesh %s: %s", p.Mesh.Name, generated.Message)
	}
	return nil
}

func whileNoMeshServices(p *planner) *passage.Reason {
	if count := p.Mesh.Status.MeshServices; p.record.Revert || count != nil && count.Total > 0 {
		return nil
	}
	return passage.Hold(kumav1alpha1.ReasonNoMeshServices, "Mesh %s has no MeshServices: waiting for the first one to be generated or created", p.Mesh.Name)
}

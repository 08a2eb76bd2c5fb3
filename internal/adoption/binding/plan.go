package binding

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// Target is what one cluster gets of a resource.
type Target struct {
	Cluster  string
	Manifest *unstructured.Unstructured
}

// PlanTargets are what clusters get of a resource. The first error is what the resource says that means nothing.
func PlanTargets(binding *model.Binding, template *unstructured.Unstructured) (all []Target, wrong, err error) {
	resolution, wrong := policy.ResolveConflict(binding.Spec.ConflictResolution, template.GetAnnotations()[policy.AnnotationConflictResolution])
	common, err := manifest.FromTemplate(template, resolution)
	if err != nil {
		return nil, wrong, err
	}
	divided := binding.Spec.Placement != nil && binding.Spec.Placement.Divides() && manifest.Replicas(common) >= 0
	for _, target := range model.Targets(binding) {
		s := Target{target.Name, common}
		if divided {
			s.Manifest = common.DeepCopy()
			if err := unstructured.SetNestedField(s.Manifest.Object, int64(target.Replicas), "spec", "replicas"); err != nil {
				return nil, wrong, err
			}
		}
		all = append(all, s)
	}
	return all, wrong, nil
}

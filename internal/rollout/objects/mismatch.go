package objects

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// Mismatch names a field of the spec that the pods of another operator's StatefulSet are known to run without, empty if none
// is known. That operator may have added what it likes, and may have removed nothing that the spec asks for.
func Mismatch(spec *v1alpha2.MaterializeSpec, set *appsv1.StatefulSet) string {
	pod := &set.Spec.Template
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	container := &pod.Spec.Containers[0]
	if named := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == AppEnvironmentd }); named > 0 {
		container = &pod.Spec.Containers[named]
	}
	switch {
	case container.Image != spec.EnvironmentdImageRef:
		return "environmentdImageRef"
	case spec.ServiceAccountName != "" && pod.Spec.ServiceAccountName != spec.ServiceAccountName:
		return "serviceAccountName"
	case !hasAll(spec.PodLabels, pod.Labels):
		return "podLabels"
	case !hasAll(spec.PodAnnotations, pod.Annotations):
		return "podAnnotations"
	case spec.EnvironmentdResourceRequirements != nil && !hasResources(*spec.EnvironmentdResourceRequirements, container.Resources):
		return "environmentdResourceRequirements"
	}
	for i, arg := range spec.EnvironmentdExtraArgs {
		if !slices.Contains(container.Args, arg) && !slices.Contains(container.Command, arg) {
			return fmt.Sprintf("environmentdExtraArgs[%d]", i)
		}
	}
	for i, variable := range spec.EnvironmentdExtraEnv {
		runs := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == variable.Name })
		if runs < 0 || !hasValue(variable, container.Env[runs]) {
			return fmt.Sprintf("environmentdExtraEnv[%d]", i)
		}
	}
	return ""
}

// hasValue compares variables as the API server stores them.
func hasValue(want, have corev1.EnvVar) bool {
	want = *want.DeepCopy()
	if want.ValueFrom != nil && want.ValueFrom.FieldRef != nil && want.ValueFrom.FieldRef.APIVersion == "" {
		want.ValueFrom.FieldRef.APIVersion = "v1"
	}
	return want.Value == have.Value && equality.Semantic.DeepEqual(want.ValueFrom, have.ValueFrom)
}

func hasAll(want, have map[string]string) bool {
	return labels.SelectorFromSet(want).Matches(labels.Set(have))
}

func hasResources(want, have corev1.ResourceRequirements) bool {
	for _, lists := range [][2]corev1.ResourceList{{want.Requests, have.Requests}, {want.Limits, have.Limits}} {
		for name, quantity := range lists[0] {
			if runs, found := lists[1][name]; !found || runs.Cmp(quantity) != 0 {
				return false
			}
		}
	}
	return true
}

package objects

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

func TestMismatch(t *testing.T) {
	memory := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
	}
	fromSecret := func(name string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "license"}}
	}
	// The API server adds the defaults of references.
	env := func(version string, divisor resource.Quantity) []corev1.EnvVar {
		return []corev1.EnvVar{
			{Name: "LEVEL", Value: "1"}, {Name: "LICENSE", ValueFrom: fromSecret("mine")},
			{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: version, FieldPath: "spec.nodeName"}}},
			{Name: "CPUS", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu", Divisor: divisor}}},
		}
	}
	cases := map[string]struct {
		edit func(*v1alpha2.MaterializeSpec)
		want string
	}{
		"as it was rolled out": {func(*v1alpha2.MaterializeSpec) {}, ""},
		"in other words": {func(s *v1alpha2.MaterializeSpec) {
			s.EnvironmentdResourceRequirements = &corev1.ResourceRequirements{Requests: memory("1024Mi")}
		}, ""},
		"without what may be the other operator's": {func(s *v1alpha2.MaterializeSpec) {
			s.PodLabels, s.PodAnnotations, s.EnvironmentdExtraArgs, s.EnvironmentdExtraEnv = nil, nil, nil, nil
		}, ""},
		"another image":           {func(s *v1alpha2.MaterializeSpec) { s.EnvironmentdImageRef = "e:2" }, "environmentdImageRef"},
		"another service account": {func(s *v1alpha2.MaterializeSpec) { s.ServiceAccountName = "other" }, "serviceAccountName"},
		"another label":           {func(s *v1alpha2.MaterializeSpec) { s.PodLabels = map[string]string{"a": "c"} }, "podLabels"},
		"a further annotation":    {func(s *v1alpha2.MaterializeSpec) { s.PodAnnotations["x"] = "y" }, "podAnnotations"},
		"a further argument": {func(s *v1alpha2.MaterializeSpec) {
			s.EnvironmentdExtraArgs = append(s.EnvironmentdExtraArgs, "--more")
		}, "environmentdExtraArgs[1]"},
		"another value": {func(s *v1alpha2.MaterializeSpec) { s.EnvironmentdExtraEnv[0].Value = "2" }, "environmentdExtraEnv[0]"},
		"a further variable": {func(s *v1alpha2.MaterializeSpec) {
			s.EnvironmentdExtraEnv = append(s.EnvironmentdExtraEnv, corev1.EnvVar{Name: "MORE"})
		}, "environmentdExtraEnv[4]"},
		"a value from another Secret": {func(s *v1alpha2.MaterializeSpec) { s.EnvironmentdExtraEnv[1].ValueFrom = fromSecret("theirs") }, "environmentdExtraEnv[1]"},
		"a value in place of one from a Secret": {func(s *v1alpha2.MaterializeSpec) {
			s.EnvironmentdExtraEnv[1] = corev1.EnvVar{Name: "LICENSE"}
		}, "environmentdExtraEnv[1]"},
		"a value from a Secret in place of one": {func(s *v1alpha2.MaterializeSpec) {
			s.EnvironmentdExtraEnv[0] = corev1.EnvVar{Name: "LEVEL", ValueFrom: fromSecret("mine")}
		}, "environmentdExtraEnv[0]"},
		"more memory": {func(s *v1alpha2.MaterializeSpec) {
			s.EnvironmentdResourceRequirements = &corev1.ResourceRequirements{Limits: memory("2Gi")}
		}, "environmentdResourceRequirements"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha2.MaterializeSpec{SharedSpec: v1alpha2.SharedSpec{
				EnvironmentdImageRef: "e:1", PodLabels: map[string]string{"a": "b"}, PodAnnotations: map[string]string{"c": "d"},
				EnvironmentdExtraArgs: []string{"--verbose"}, EnvironmentdExtraEnv: env("", resource.Quantity{}),
			}}
			c.edit(spec)
			set := &appsv1.StatefulSet{}
			set.Spec.Template.Labels = map[string]string{"a": "b", "app": "environmentd"}
			set.Spec.Template.Annotations = map[string]string{"c": "d"}
			set.Spec.Template.Spec = corev1.PodSpec{ServiceAccountName: "mine", Containers: []corev1.Container{{Name: "sidecar"}, {
				Name: "environmentd", Image: "e:1", Args: []string{"--theirs", "--verbose"}, Env: env("v1", resource.MustParse("0")),
				Resources: corev1.ResourceRequirements{Requests: memory("1Gi"), Limits: memory("1Gi")},
			}}}
			if got := Mismatch(spec, set); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

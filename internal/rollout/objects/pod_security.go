package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/kube"
)

// materializeUser is the user and the group that environmentd and balancerd run as. A kubelet starts no image whose user is
// only a name, unless the pod says a number.
const materializeUser = 999

// restrictPod gives a pod what the level "restricted" of Pod Security requires. It runs as a user, or with 0 as that of its
// image, which must not be root.
func restrictPod(pod *corev1.PodSpec, user int64) {
	pod.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr.To(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if user != 0 {
		pod.SecurityContext.RunAsUser, pod.SecurityContext.RunAsGroup, pod.SecurityContext.FSGroup = &user, &user, &user
	}
	for i := range pod.Containers {
		pod.Containers[i].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
}

// KeepPodSecurity returns a desired Deployment without what restricts its pods, if an earlier Fairlead has made it so and
// nothing else about the pods changes: to restart them for that would disturb what runs.
func KeepPodSecurity(m *v1alpha2.Materialize, want, have *unstructured.Unstructured) *unstructured.Unstructured {
	if want.GetAnnotations()[v1alpha2.AnnotationApplied] == have.GetAnnotations()[v1alpha2.AnnotationApplied] || sameTemplate(want, have) {
		return want
	}
	if plain := withoutPodSecurity(m, want); sameTemplate(plain, have) {
		return plain
	}
	return want
}

// withoutPodSecurity is a Deployment as earlier versions of Fairlead applied it.
func withoutPodSecurity(m *v1alpha2.Materialize, deployment *unstructured.Unstructured) *unstructured.Unstructured {
	plain := deployment.DeepCopy()
	pod, _, _ := unstructured.NestedMap(plain.Object, "spec", "template", "spec")
	delete(pod, "securityContext")
	delete(pod, "automountServiceAccountToken")
	containers, _ := pod["containers"].([]any)
	for _, container := range containers {
		if container, ok := container.(map[string]any); ok {
			delete(container, "securityContext")
		}
	}
	_ = unstructured.SetNestedMap(plain.Object, pod, "spec", "template", "spec")
	// The digest covers everything else.
	unstructured.RemoveNestedField(plain.Object, "metadata", "annotations")
	return SetOwner(m, plain)
}

func sameTemplate(want, have *unstructured.Unstructured) bool {
	template := func(of *unstructured.Unstructured) *unstructured.Unstructured {
		value, _, _ := unstructured.NestedFieldNoCopy(of.Object, "spec", "template")
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": of.GetAPIVersion(), "kind": of.GetKind(), "spec": map[string]any{"template": value},
		}}
	}
	return kube.FirstDifference(template(want), template(have)) == ""
}

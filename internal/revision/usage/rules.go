package usage

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// notTerminated selects the pods that can use a revision. Metadata has no phase, so the API server filters: it sends a
// deletion when a pod terminates.
var notTerminated = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// choice is the revision or tag that labels choose, and the key of the label that does. The zero value is none.
type choice struct{ name, label string }

func (c choice) String() string {
	switch c.label {
	case "":
		return ""
	case v1.LabelInjection:
		return "label " + c.label + "=" + v1.InjectionEnabled
	case v1.LabelSidecarInject:
		return "label " + c.label + "=true"
	}
	return "label " + c.label + "=" + c.name
}

// Choice is the revision or tag that labels choose for pods. The zero value is none.
type Choice struct {
	Name string
	// Label is the key of the label that chooses.
	Label string
	// OfNamespace is set when it is a label of the namespace, which then leaves no choice to its pods.
	OfNamespace bool
}

// Choose tells what the labels of a namespace and those of a pod in it choose together.
func Choose(namespace, pod map[string]string) Choice {
	if pod[v1.LabelSidecarInject] == "false" {
		return Choice{}
	}
	if policy := policyOf(namespace); policy.decides {
		return Choice{Name: policy.name, Label: policy.label, OfNamespace: policy.name != ""}
	}
	chosen := podChoice(pod)
	return Choice{Name: chosen.name, Label: chosen.label}
}

// policy is the choice of a namespace. One that decides overrides the labels of its pods, even if it selects nothing: that is
// how Istio's webhooks select.
type policy struct {
	choice
	decides bool
}

func policyOf(labels map[string]string) policy {
	if injection, ok := labels[v1.LabelInjection]; ok {
		if injection != v1.InjectionEnabled {
			return policy{decides: true}
		}
		return policy{choice{v1.DefaultRevision, v1.LabelInjection}, true}
	}
	if revision, ok := labels[v1.LabelRevision]; ok {
		return policy{choiceOf(revision), true}
	}
	return policy{}
}

func choiceOf(revision string) choice {
	if revision == "" {
		return choice{}
	}
	return choice{revision, v1.LabelRevision}
}

// pod is what a pod refers to, or those that a workload will have. The zero value refers to nothing.
type pod struct {
	// chosen counts where the namespace leaves the choice to its pods.
	chosen choice
	// injected is the revision of the sidecar. It counts whatever the labels select: the sidecar needs its control plane.
	injected string
}

func podOf(labels, annotations map[string]string) pod {
	return pod{chosen: podChoice(labels), injected: annotations[v1.AnnotationRevision]}
}

// templateOf is what the pods of a workload will refer to. Injection replaces the annotation of their template. With injection off
// it stays: istiod gives such a template to gateways, and its pods connect to that revision.
func templateOf(labels, annotations map[string]string) pod {
	refers := pod{chosen: podChoice(labels)}
	if labels[v1.LabelSidecarInject] == "false" {
		refers.injected = annotations[v1.AnnotationRevision]
	}
	return refers
}

func podChoice(labels map[string]string) choice {
	inject := labels[v1.LabelSidecarInject]
	if inject == "false" {
		return choice{}
	}
	if revision, ok := labels[v1.LabelRevision]; ok {
		return choiceOf(revision)
	}
	switch {
	case inject == "true":
		return choice{v1.DefaultRevision, v1.LabelSidecarInject}
	case labels[v1.LabelInjection] == v1.InjectionEnabled:
		return choice{v1.DefaultRevision, v1.LabelInjection}
	}
	return choice{}
}

// tag is which revisions a tag refers to. The zero value refers to none.
type tag struct {
	// fixed is the revision that the spec names.
	fixed string
	// current is the revision that the tag points to. It lags behind the spec while the tag waits for its target.
	current string
}

func tagOf(t *v1.IstioRevisionTag) tag {
	refers := tag{current: t.Status.IstioRevision}
	if t.Spec.TargetRef.Kind == v1.IstioRevisionKind {
		refers.fixed = t.Spec.TargetRef.Name
	}
	return refers
}

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

// via is the label that a choice was made with.
type via uint8

const (
	viaRevisionLabel via = iota + 1
	viaInjectionLabel
	viaSidecarLabel
)

// choice is the revision or tag that labels choose. The zero value is none.
type choice struct {
	name string
	via  via
}

func (c choice) String() string {
	switch c.via {
	case viaRevisionLabel:
		return "label " + v1.LabelRevision + "=" + c.name
	case viaInjectionLabel:
		return "label " + v1.LabelInjection + "=" + v1.InjectionEnabled
	case viaSidecarLabel:
		return "label " + v1.LabelSidecarInject + "=true"
	}
	return ""
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
	if says := policyOf(namespace); says.decides {
		return Choice{Name: says.name, Label: says.via.label(), OfNamespace: says.name != ""}
	}
	chosen := podChoice(pod)
	return Choice{Name: chosen.name, Label: chosen.via.label()}
}

func (v via) label() string {
	switch v {
	case viaRevisionLabel:
		return v1.LabelRevision
	case viaInjectionLabel:
		return v1.LabelInjection
	case viaSidecarLabel:
		return v1.LabelSidecarInject
	}
	return ""
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
		return policy{choice{v1.DefaultRevision, viaInjectionLabel}, true}
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
	return choice{revision, viaRevisionLabel}
}

// pod is what a pod refers to. The zero value refers to nothing.
type pod struct {
	// chosen counts where the namespace leaves the choice to its pods.
	chosen choice
	// injected is the revision of the sidecar. It counts whatever the labels select: the sidecar needs its control plane.
	injected string
}

func podOf(labels, annotations map[string]string) pod {
	return pod{chosen: podChoice(labels), injected: annotations[v1.AnnotationRevision]}
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
		return choice{v1.DefaultRevision, viaSidecarLabel}
	case labels[v1.LabelInjection] == v1.InjectionEnabled:
		return choice{v1.DefaultRevision, viaInjectionLabel}
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

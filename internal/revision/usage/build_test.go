package usage

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// labelled has labels as kubectl takes them: "istio.io/rev=prod,istio-injection=enabled".
func labelled(text string) map[string]string {
	parsed := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			parsed[key] = value
		}
	}
	return parsed
}

func makeNamespace(name, with string) *metav1.PartialObjectMetadata {
	object := MetadataOf(kindNamespace)
	object.Name, object.Labels = name, labelled(with)
	return object
}

func makePod(namespace, name, with, revision string) *metav1.PartialObjectMetadata {
	object := MetadataOf(kindPod)
	object.Namespace, object.Name, object.Labels = namespace, name, labelled(with)
	if revision != "" {
		object.Annotations = map[string]string{v1.AnnotationRevision: revision}
	}
	return object
}

// makeTag takes the kind and name of its target as "Istio/default".
func makeTag(name, target, status string) *v1.IstioRevisionTag {
	kind, of, _ := strings.Cut(target, "/")
	return &v1.IstioRevisionTag{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.IstioRevisionTagSpec{TargetRef: v1.TargetReference{Kind: kind, Name: of}},
		Status:     v1.IstioRevisionTagStatus{IstioRevision: status},
	}
}

// watched tells whether the API server would send a pod in that phase.
func watched(phase corev1.PodPhase) bool {
	return notTerminated.Matches(fields.Set{"status.phase": string(phase)})
}

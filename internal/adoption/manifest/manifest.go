// Package manifest decides which parts of an object are the user's, and which a cluster assigns: pure.
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/capacity"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// AnnotationRetainReplicas set to "true" on a resource of the hub leaves the number of replicas to the clusters.
const AnnotationRetainReplicas = "resourcetemplate.karmada.io/retain-replicas"

const AnnotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// OfTemplate has the fields of a template that its user has set.
func OfTemplate(template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	annotations := maps.Clone(template.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == AnnotationLastApplied || domainOf(key) == "fairlead.dev" || IsAssignedAnnotation(key)
	})
	m := WithUserMetadata(template, annotations)
	unowned := unownedFields{template: template}
	RemoveAssigned(m, unowned.has)
	return m, unowned.err
}

// FromTemplate is the manifest of a Work: the fields of a template that its user has set, and an annotation with the conflict
// resolution. Version is that of the template: it changes with these fields, and, but for a Secret, with nothing else.
func FromTemplate(template *unstructured.Unstructured, resolution policyv1alpha1.ConflictResolution) (m *unstructured.Unstructured, version string, err error) {
	if m, err = OfTemplate(template); err != nil {
		return nil, "", err
	}
	version = versionOf(template, m)
	m.SetAnnotations(model.MergeKeys(m.GetAnnotations(), nil, map[string]string{
		policy.AnnotationConflictResolution: policy.ConflictAnnotation(resolution),
	}))
	return m, version, nil
}

// Version of a template, as FromTemplate has it.
func Version(template *unstructured.Unstructured) (string, error) {
	m, err := OfTemplate(template)
	if err != nil {
		return "", err
	}
	return versionOf(template, m), nil
}

// versionOf a template with these fields. Bindings have it in their status, and who may read these need not be able to read Secrets:
// a digest of the values would let them check a guess.
func versionOf(template, fields *unstructured.Unstructured) string {
	if ContentOf(fields) == nil {
		return Digest(fields.Object)
	}
	return Digest([]string{string(template.GetUID()), template.GetResourceVersion()})
}

// Digest of content that can be encoded as JSON.
func Digest(content any) string {
	text, err := json.Marshal(content)
	if err != nil {
		// Content that was read from JSON can be encoded; the text of any other still differs by content.
		text = fmt.Append(nil, content)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// WithUserMetadata is an object without its status, and with the labels of its users and the given annotations as its only
// metadata besides its name.
func WithUserMetadata(object *unstructured.Unstructured, annotations map[string]string) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: make(map[string]any, len(object.Object))}
	for field, value := range object.Object {
		if field != "status" && field != "metadata" {
			m.Object[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	m.SetName(object.GetName())
	m.SetNamespace(object.GetNamespace())
	m.SetLabels(UserKeys(object.GetLabels()))
	if len(annotations) > 0 {
		m.SetAnnotations(annotations)
	}
	return m
}

// UserContent is the part of an object that concerns users: not its status, server metadata and ownership labels.
func UserContent(object *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{}
	if labels := model.MergeKeys(object.GetLabels(), model.OwnershipLabels); len(labels) > 0 {
		metadata["labels"] = ToAny(labels)
	}
	if annotations := object.GetAnnotations(); len(annotations) > 0 {
		metadata["annotations"] = ToAny(annotations)
	}
	content := maps.Clone(object.Object)
	delete(content, "status")
	content["metadata"] = metadata
	return content
}

// ResolutionOf is the conflict resolution that FromTemplate put into a manifest, Abort if there is none.
func ResolutionOf(manifest *unstructured.Unstructured) policyv1alpha1.ConflictResolution {
	resolution, _ := policy.ResolveConflict("", manifest.GetAnnotations()[policy.AnnotationConflictResolution])
	return resolution
}

// ForMember is a manifest as it is written to a cluster, without the annotations of Fairlead and Karmada.
func ForMember(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	m := manifest.DeepCopy()
	m.SetAnnotations(UserKeys(m.GetAnnotations()))
	return m
}

// UserKeys are the labels or annotations that are not Fairlead's, Karmada's or kubectl's own.
func UserKeys(all map[string]string) map[string]string {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		d := domainOf(key)
		return d == "fairlead.dev" || d == "karmada.io" || strings.HasSuffix(d, ".karmada.io") || key == AnnotationLastApplied
	})
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func domainOf(key string) string {
	if domain, _, found := strings.Cut(key, "/"); found {
		return domain
	}
	return ""
}

// Replicas are spec.replicas of a resource, -1 if it has no such field.
func Replicas(template *unstructured.Unstructured) int32 {
	if n, found, err := unstructured.NestedInt64(template.Object, "spec", "replicas"); err == nil && found {
		return int32(n)
	}
	return -1
}

// PodRequests are the resources that one replica of a workload requests, nil for a resource whose pods are unknown.
func PodRequests(template *unstructured.Unstructured) corev1.ResourceList {
	path, runs := podSpecPaths[template.GroupVersionKind().GroupKind().String()]
	if !runs {
		return nil
	}
	content, _, _ := unstructured.NestedMap(template.Object, path...)
	var spec corev1.PodSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &spec) != nil {
		// The API server of the hub has checked the template.
		return nil
	}
	return capacity.PodRequests(&spec)
}

func ToAny(of map[string]string) map[string]any {
	m := make(map[string]any, len(of))
	for key, value := range of {
		m[key] = value
	}
	return m
}

package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// AnnotationContent on the manifest of a Work has the digest of the values that the manifest leaves out.
const AnnotationContent = "fairlead.dev/content"

// ContentOf has the fields of a Secret with its values, nil if there are none. A Work leaves them out: more people may read Works
// than Secrets, and the API server does not encrypt Works at rest as it does Secrets.
func ContentOf(object *unstructured.Unstructured) map[string]any {
	if object.GroupVersionKind().GroupKind().String() != "Secret" {
		return nil
	}
	content := map[string]any{}
	for _, field := range []string{"data", "stringData"} {
		if value, found := object.Object[field]; found {
			content[field] = value
		}
	}
	if len(content) == 0 {
		return nil
	}
	return content
}

// WithoutContent is a manifest as a Work has it: with the digest of its values instead of these, if it has any.
func WithoutContent(m *unstructured.Unstructured) *unstructured.Unstructured {
	content := ContentOf(m)
	if content == nil {
		return m
	}
	rest := m.DeepCopy()
	for field := range content {
		delete(rest.Object, field)
	}
	rest.SetAnnotations(model.MergeKeys(m.GetAnnotations(), nil, map[string]string{AnnotationContent: Digest(content)}))
	return rest
}

// WithContent is the manifest of a Work with the values that it leaves out, nil if the content is another one.
func WithContent(m *unstructured.Unstructured, content map[string]any) *unstructured.Unstructured {
	digest, left := m.GetAnnotations()[AnnotationContent]
	if !left {
		return m
	}
	if content == nil || Digest(content) != digest {
		return nil
	}
	whole := m.DeepCopy()
	for field, value := range content {
		whole.Object[field] = value
	}
	whole.SetAnnotations(model.MergeKeys(m.GetAnnotations(), []string{AnnotationContent}))
	return whole
}

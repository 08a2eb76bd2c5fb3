package kube

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A status is written only to the object that was read: with its resourceVersion, and as no more than the given part.
func TestApplyStatus(t *testing.T) {
	for name, c := range map[string]struct{ namespace, want string }{
		"cluster-scoped": {"", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"it","resourceVersion":"7"},"status":{"phase":"Running"}}`},
		"namespaced":     {"shop", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"it","namespace":"shop","resourceVersion":"7"},"status":{"phase":"Running"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			sent := &statusRecorder{}
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "it", ResourceVersion: "7", UID: "u"}}
			err := ApplyStatus(t.Context(), sent, corev1.SchemeGroupVersion.WithKind("Node"), object, map[string]string{"phase": "Running"}, "fairlead/test")
			if err != nil || sent.text != c.want || sent.owner != "fairlead/test" || !sent.forced {
				t.Errorf("%v, %s by %s, forced: %t", err, sent.text, sent.owner, sent.forced)
			}
		})
	}
}

// Fields that stay after the apply, because an earlier version has patched them, are removed by a patch of what was applied.
func TestApplyStatusPart(t *testing.T) {
	type status struct {
		Phase  string         `json:"phase,omitempty"`
		Record map[string]int `json:"record,omitempty"`
		Other  []string       `json:"other,omitempty"`
	}
	whole := status{Phase: "Running", Other: []string{"of another owner"}}
	for name, c := range map[string]struct{ live, patch string }{
		"rejected apply":           {"", `{"metadata":{"resourceVersion":"7"},"status":{"other":["of another owner"],"phase":"Running","record":null}}`},
		"applied":                  {`{"other":["of another owner"],"phase":"Running"}`, ""},
		"field of a newer version": {`{"other":["of another owner"],"phase":"Running","new":1}`, ""},
		"leftover": {
			`{"other":["of another owner"],"phase":"Running","record":{"batch":1}}`,
			`{"metadata":{"resourceVersion":"8"},"status":{"record":null}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sent := &statusRecorder{response: `{"metadata":{"resourceVersion":"8"},"status":` + c.live + `}`, invalid: c.live == ""}
			object := &unstructured.Unstructured{Object: map[string]any{
				"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{"name": "it", "resourceVersion": "7"},
				"status": map[string]any{"record": map[string]any{"batch": int64(1)}},
			}}
			part := status{Phase: "Running"}
			err := ApplyStatusPart(t.Context(), sent, corev1.SchemeGroupVersion.WithKind("Node"), object, part, whole, "fairlead/test")
			if want := `{"kind":"Node","apiVersion":"v1","metadata":{"name":"it","resourceVersion":"7"},"status":{"phase":"Running"}}`; err != nil || sent.text != want {
				t.Errorf("%v, applied %s", err, sent.text)
			}
			if sent.patch != c.patch {
				t.Errorf("patched %s", sent.patch)
			}
		})
	}
}

type statusRecorder struct {
	client.Client
	text, owner, patch string
	forced, invalid    bool
	response           string
}

func (r *statusRecorder) Status() client.SubResourceWriter { return statusWriter{recorder: r} }

type statusWriter struct {
	client.SubResourceWriter
	recorder *statusRecorder
}

func (w statusWriter) Apply(_ context.Context, configuration runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	text, err := json.Marshal(configuration)
	applied := (&client.SubResourceApplyOptions{}).ApplyOpts(options)
	w.recorder.text, w.recorder.owner, w.recorder.forced = string(text), applied.FieldManager, applied.Force != nil && *applied.Force
	if w.recorder.invalid {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "it", nil)
	}
	if err == nil && w.recorder.response != "" {
		err = json.Unmarshal([]byte(w.recorder.response), configuration)
	}
	return err
}

func (w statusWriter) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(object)
	w.recorder.patch = string(data)
	return err
}

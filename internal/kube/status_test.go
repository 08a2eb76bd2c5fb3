package kube

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

type statusRecorder struct {
	client.Client
	text, owner string
	forced      bool
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
	return err
}

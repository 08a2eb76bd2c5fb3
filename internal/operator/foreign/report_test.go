package foreign

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
)

// TestHeldIsTriedAgain: the condition is written until that has succeeded, and the event is sent once. What the other controller
// removes then is not written again.
func TestHeldIsTriedAgain(t *testing.T) {
	for name, failure := range map[string]error{
		"conflict": apierrors.NewConflict(schema.GroupResource{Resource: "istios"}, "default", nil),
		"refused":  apierrors.NewForbidden(schema.GroupResource{Resource: "istios"}, "default", nil),
		"broken":   errors.New("connection reset"),
	} {
		t.Run(name, func(t *testing.T) {
			istio := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sailoperator.io/v1", "kind": "Istio"}}
			istio.SetName("default")
			istio.SetUID(types.UID("1"))
			istios := schema.GroupVersionResource{Group: "sailoperator.io", Version: "v1", Resource: "istios"}
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{istios: "IstioList"}, istio)
			fails, patches := failure, 0
			client.PrependReactor("patch", "istios", func(clienttesting.Action) (bool, runtime.Object, error) {
				patches++
				return true, istio, fails
			})
			recorder := events.NewFakeRecorder(10)
			r := &Reporter{log: logr.Discard(), objects: client, recorder: recorder, announced: map[types.UID]string{}, written: map[types.UID]string{}}
			held := func() error { return r.Held(t.Context(), Of("revision"), "it acts", "stop it") }
			if err := held(); (err == nil) != apierrors.IsConflict(failure) {
				t.Errorf("at first: %v", err)
			}
			fails = nil
			for range 3 {
				if err := held(); err != nil {
					t.Fatal(err)
				}
			}
			if patches != 2 || len(recorder.Events) != 1 {
				t.Errorf("%d patches and %d events", patches, len(recorder.Events))
			}
		})
	}
}

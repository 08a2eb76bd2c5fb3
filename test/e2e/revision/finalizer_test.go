package revision_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
)

// A resource with a finalizer of another controller names that finalizer in its status. Its control plane is uninstalled
// all the same.
func TestForeignFinalizer(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	const backup = "example.com/backup"
	revision := makeRevision(shortName(t), w.namespace(t), "v1.26.0")
	revision.Finalizers = []string{backup}
	ready(t, w, harness.Create(t, w, revision))
	tag := makeTag(shortName(t)+"-tag", v1.IstioRevisionKind, revision.Name)
	tag.Finalizers = []string{backup}
	w.points(t, harness.Create(t, w, tag), revision.Name)
	letGo := func(object client.Object) {
		t.Cleanup(func() {
			_ = w.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		})
	}
	letGo(revision)
	letGo(tag)

	for _, object := range []client.Object{tag, revision} {
		if err := w.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		until(t, w, object, func(object client.Object) error {
			got := condition(object, v1.ConditionReconciled)
			if got.Status != metav1.ConditionFalse || !strings.HasSuffix(got.Message, "waiting for finalizers of other controllers: "+backup) {
				return errors.New("it does not say who keeps it")
			}
			return nil
		})
	}
	if tag.Status.State != v1.State(v1.ReasonBeingDeleted) || revision.Status.State != v1.State(v1.ReasonBeingDeleted) {
		t.Errorf("the states are %s and %s", tag.Status.State, revision.Status.State)
	}
	w.nothingLeft(t, func(kind string, o client.Object) bool {
		return strings.Contains(o.GetName(), "istiod-"+revision.Name) || strings.Contains(o.GetName(), tag.Name+"-"+revision.Spec.Namespace)
	})
}

package moving_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// writtenByAnnotation is an annotation in files of objects: the field manager of one that the other system has not written. It is not created.
const writtenByAnnotation = "example.com/written-by"

// apply creates the objects of a file as a field manager, with their status, a day ago as far as their field managers tell. Owners
// are objects of the same file, and have their UIDs from the cluster.
func (w world) apply(t *testing.T, file, manager string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return w.applyText(t, raw, manager)
}

func (w world) applyText(t *testing.T, text []byte, manager string, created ...*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	all := created
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		setOwners(t, object, all)
		by := manager
		if annotations := object.GetAnnotations(); annotations[writtenByAnnotation] != "" {
			by = annotations[writtenByAnnotation]
			delete(annotations, writtenByAnnotation)
			object.SetAnnotations(annotations)
		}
		w.createAs(t, object, by, manager)
		all = append(all, object)
	}
}

// setOwners sets the UIDs of owners.
func setOwners(t *testing.T, object *unstructured.Unstructured, created []*unstructured.Unstructured) {
	t.Helper()
	owners := object.GetOwnerReferences()
	for i := range owners {
		for _, o := range created {
			if owners[i].UID == "" && o.GetKind() == owners[i].Kind && o.GetName() == owners[i].Name {
				owners[i].UID = o.GetUID()
			}
		}
		if owners[i].UID == "" {
			t.Fatalf("%s %s belongs to a %s that is not there", object.GetKind(), object.GetName(), owners[i].Kind)
		}
	}
	if len(owners) > 0 {
		object.SetOwnerReferences(owners)
	}
}

// createAs creates an object as one field manager, and writes its status as another.
func (w world) createAs(t *testing.T, object *unstructured.Unstructured, manager, statusManager string) {
	t.Helper()
	status := object.Object["status"]
	wait.Until(t, func(ctx context.Context) error { // a kind may just have been installed
		err := w.Create(ctx, object, client.FieldOwner(manager))
		if meta.IsNoMatchError(err) {
			return err
		}
		if object.GetKind() == "Namespace" && apierrors.IsAlreadyExists(err) {
			return nil // The chart of Fairlead has it as well.
		}
		if err != nil {
			return wait.Permanent(fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err))
		}
		return nil
	})
	if status != nil {
		object.Object["status"] = status
		if err := w.Status().Update(t.Context(), object, client.FieldOwner(statusManager)); err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	w.age(t, object)
}

// age has the field managers of an object have written long ago.
func (w world) age(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		managed := object.GetManagedFields()
		for i := range managed {
			managed[i].Time = ptr.To(metav1.NewTime(time.Now().Add(-24 * time.Hour)))
		}
		object.SetManagedFields(managed)
		// The API server takes the times of a write that changes something besides.
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["example.com/aged"] = "true"
		object.SetAnnotations(annotations)
		return w.Update(ctx, object, client.FieldOwner("age"))
	})
}

package meshservice_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// TestStorySamples: the API takes every sample of the documentation as it is written, but for names and namespaces.
func TestStorySamples(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	files, err := filepath.Glob("../../../docs/samples/mesh*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	strict := client.WithFieldValidation(w, metav1.FieldValidationStrict)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
			for {
				var object unstructured.Unstructured
				if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
				kind, name := object.GetKind(), object.GetName()
				if object.GetNamespace() != "" {
					object.SetNamespace(metav1.NamespaceDefault)
				}
				object.SetName(cluster.Name(t))
				if err := strict.Create(t.Context(), &object, client.DryRunAll); err != nil {
					t.Errorf("%s %s: %v", kind, name, err)
				}
			}
		})
	}
}

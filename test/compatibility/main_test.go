// Package compatibility holds the YAML that users already have against a real API server: what the designs show
// is accepted as written, and what cannot work is refused with the name of the field.
package compatibility

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/api/sailoperator/v1alpha1"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const fieldOwner = client.FieldOwner("compatibility")

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{Profile: "hub"})) }

var installed struct {
	sync.Once
	err error
}

// server returns a client of a cluster that has Fairlead's CRDs. It is strict, so that a field the schema does
// not know fails a test instead of vanishing.
func server(t *testing.T) client.Client {
	t.Helper()
	config := cluster.Shared(t).Config()
	installed.Do(func() { installed.err = install(t.Context(), config) })
	if installed.err != nil {
		t.Fatal(installed.err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(c, "Strict")
}

// install installs Fairlead's CRDs, and waits until their objects can be asked for: a CRD that is established may not be served yet.
func install(ctx context.Context, config *rest.Config) error {
	if _, err := crds.Install(ctx, config, crds.Options{Timeout: wait.Deadline()}); err != nil {
		return err
	}
	all, err := crds.All()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	return wait.Try(ctx, func(ctx context.Context) error {
		for _, crd := range all {
			for _, version := range crd.Spec.Versions {
				if !version.Storage {
					continue // Without a webhook that converts, no other version is served.
				}
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.ListKind})
				if err := c.List(ctx, list, client.Limit(1)); err != nil {
					return fmt.Errorf("list %s: %w", list.GroupVersionKind(), err)
				}
			}
		}
		return nil
	})
}

// apply writes the object as kubectl apply --server-side would, and removes it when the test ends.
func apply(t *testing.T, c client.Client, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	applied := object.DeepCopy()
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), fieldOwner); err != nil {
		t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), applied)); err != nil {
			t.Errorf("delete %s %s: %v", applied.GetKind(), applied.GetName(), err)
		}
	})
	return applied
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func read(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// eachFile runs a subtest for every YAML file of a directory under testdata.
func eachFile(t *testing.T, directory string, test func(t *testing.T, file string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", directory, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples in %s: %v", directory, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { test(t, file) })
	}
}

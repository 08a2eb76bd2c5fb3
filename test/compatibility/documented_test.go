package compatibility

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// documented is a manifest, and the fields of it that Fairlead takes and does not support.
type documented struct {
	Name    string         `json:"name"`
	Refused []string       `json:"refused"`
	Mesh    string         `json:"mesh"`
	Spec    map[string]any `json:"spec"`
}

// Manifests in the shape that others document apply strictly, and lose nothing. What is not supported is refused in status, by name.
func TestDocumentedManifests(t *testing.T) {
	c := server(t)
	namespace := cluster.Name(t)
	apply(t, c, parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}"))
	// A binding whose template does not exist is deleted.
	for _, d := range readDocumented(t, "bindings", namespace) {
		apply(t, c, parse(t, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {selector: {matchLabels: {app: web}}, "+
			"template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}", d.Name, namespace)))
	}
	startOperator(t)
	// Bindings come first: policies that take all Deployments would write them.
	kinds := []struct{ apiVersion, kind, file, condition string }{
		{"work.karmada.io/v1alpha2", "ResourceBinding", "bindings", "Scheduled"},
		{"policy.karmada.io/v1alpha1", "PropagationPolicy", "policies", "Scheduled"},
		{"policy.karmada.io/v1alpha1", "ClusterPropagationPolicy", "policies", "Scheduled"},
		{"cluster.karmada.io/v1alpha1", "Cluster", "clusters", "Ready"},
		{"kuma.io/v1alpha1", "Dataplane", "dataplanes", ""},
	}
	fields, refused := 0, 0
	counts := map[string]int{}
	for _, k := range kinds {
		for _, d := range readDocumented(t, k.file, namespace) {
			t.Run(k.kind+" "+d.Name, func(t *testing.T) {
				object := &unstructured.Unstructured{Object: map[string]any{"spec": d.Spec}}
				object.SetAPIVersion(k.apiVersion)
				object.SetKind(k.kind)
				object.SetName(d.Name)
				if k.kind == "ResourceBinding" {
					object.SetName(d.Name + "-deployment")
				}
				if k.kind != "ClusterPropagationPolicy" && k.kind != "Cluster" {
					object.SetNamespace(namespace)
				}
				if d.Mesh != "" {
					object.Object["mesh"] = d.Mesh
				}
				t.Cleanup(func() { awaitDeletion(t, c, object.DeepCopy()) })
				applied := apply(t, c, object)
				stored := applied.DeepCopy()
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(applied), stored); err != nil {
					t.Fatal(err)
				}
				for _, part := range []string{"spec", "mesh"} {
					found, missing := compareFields(part, object.Object[part], stored.Object[part])
					if fields += found; len(missing) > 0 {
						t.Errorf("pruned or changed: %v", missing)
					}
				}
				counts[k.kind]++
				if len(d.Refused) > 0 {
					expectRefused(t, c, stored, k.condition, d.Refused)
					refused += len(d.Refused)
				}
			})
		}
	}
	var texts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%d of %s", counts[kind], kind))
	}
	t.Logf("applied strictly: %s; %d fields, none pruned; %d unsupported fields refused in status", strings.Join(texts, ", "), fields, refused)
}

func startOperator(t *testing.T) {
	t.Helper()
	hub, scratch := cluster.Shared(t), t.TempDir()
	admin, err := harness.NewAdminClient(hub)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := harness.InstallPermissions(t.Context(), hub, admin, scratch)
	if err != nil {
		t.Fatal(err)
	}
	operator, err := harness.StartOperator(scratch, "--kubeconfig", kubeconfig, "--passages", "adoption", "--leader-elect=false", "--log-format", "text")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(operator.Kill)
	operator.KeepLogOnFailure(t)
	wait.Until(t, func(context.Context) error { return operator.Ready() })
}

// awaitDeletion waits until an object is gone that apply deletes: after this test, no operator removes finalizers.
func awaitDeletion(t *testing.T, c client.Client, object *unstructured.Unstructured) {
	t.Helper()
	err := wait.Try(context.WithoutCancel(t.Context()), func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("%s %s is still there", object.GetKind(), object.GetName()), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func readDocumented(t *testing.T, file, namespace string) []documented {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "documented", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []documented
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), "NAMESPACE", namespace)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// expectRefused waits until a condition names the fields.
func expectRefused(t *testing.T, c client.Client, object *unstructured.Unstructured, condition string, refused []string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, one := range conditions {
			said, _ := one.(map[string]any)
			message, _ := said["message"].(string)
			if said["type"] == condition && said["status"] == "False" && said["reason"] == "UnsupportedField" &&
				!slices.ContainsFunc(refused, func(field string) bool { return !strings.Contains(message, field+" is not supported: ") }) {
				return nil
			}
		}
		return fmt.Errorf("%s is not refused: %v", strings.Join(refused, ", "), conditions)
	})
}

// compareFields counts the values of a manifest, and finds those that were not stored. What the API server has added is left alone.
func compareFields(path string, want, got any) (found int, missing []string) {
	switch want := want.(type) {
	case nil:
	case map[string]any:
		have, _ := got.(map[string]any)
		for name, value := range want {
			n, lost := compareFields(path+"."+name, value, have[name])
			found, missing = found+n, append(missing, lost...)
		}
	case []any:
		have, _ := got.([]any)
		for i, value := range want {
			var item any
			if i < len(have) {
				item = have[i]
			}
			n, lost := compareFields(fmt.Sprintf("%s[%d]", path, i), value, item)
			found, missing = found+n, append(missing, lost...)
		}
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) {
			return 0, []string{fmt.Sprintf("%s: %v, stored %v", path, want, got)}
		}
		found = 1
	}
	return found, missing
}

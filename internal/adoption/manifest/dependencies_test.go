package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestNeeds(t *testing.T) {
	pod := `
serviceAccountName: cart
imagePullSecrets: [{name: registry}]
volumes:
- {name: a, configMap: {name: settings}}
- {name: b, secret: {secretName: certificate}}
- {name: c, persistentVolumeClaim: {claimName: data}}
- {name: d, projected: {sources: [{configMap: {name: more}}, {secret: {name: hidden}}, {serviceAccountToken: {path: token}}]}}
- {name: e, emptyDir: {}}
initContainers:
- {name: first, envFrom: [{configMapRef: {name: shared}}]}
containers:
- name: cart
  envFrom: [{secretRef: {name: passwords}}]
  env:
  - {name: A, value: plain}
  - {name: B, valueFrom: {configMapKeyRef: {name: settings, key: b}}}
  - {name: C, valueFrom: {secretKeyRef: {name: key, key: c}}}
  - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
`
	all := []string{
		"ConfigMap more", "ConfigMap settings", "ConfigMap shared", "PersistentVolumeClaim data", "Secret certificate", "Secret hidden",
		"Secret key", "Secret passwords", "Secret registry", "ServiceAccount cart",
	}
	for name, tc := range map[string]struct {
		apiVersion, kind string
		want             []string
	}{
		"a Deployment":           {"apps/v1", "Deployment", all},
		"a CronJob":              {"batch/v1", "CronJob", all},
		"a Pod":                  {"v1", "Pod", all},
		"a kind without pods":    {"v1", "ConfigMap", nil},
		"a kind of other people": {"boats.example/v1", "Deployment", nil},
	} {
		t.Run(name, func(t *testing.T) {
			workload := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind}}
			workload.SetNamespace("shop")
			workload.SetName("cart")
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(pod), &spec); err != nil {
				t.Fatal(err)
			}
			if path := podSpecPaths[workload.GroupVersionKind().GroupKind().String()]; path != nil {
				if err := unstructured.SetNestedMap(workload.Object, spec, path...); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, key := range Dependencies(workload) {
				if key.Namespace != "shop" {
					t.Errorf("%s is in namespace %s", key.Name, key.Namespace)
				}
				got = append(got, key.Kind.Kind+" "+key.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNeedsNoDefaultServiceAccount(t *testing.T) {
	workload := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"serviceAccountName": "default"},
	}}
	if found := Dependencies(workload); len(found) > 0 {
		t.Errorf("it needs %v", found)
	}
}

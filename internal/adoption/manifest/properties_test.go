package manifest

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// shapes are pairs of a template and the object of a member, some of them as no API server would have them.
var shapes = [][2]string{
	{`{"apiVersion":"v1","kind":"Service","spec":{"type":"NodePort","ports":[{"port":80},{"port":53,"protocol":"UDP","nodePort":30053}]}}`, `{"apiVersion":"v1","kind":"Service","spec":{"type":"NodePort","clusterIP":"10.0.0.1","ports":[{"port":80,"nodePort":30080},{"port":53,"protocol":"UDP","nodePort":30054}]}}`},
	{`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer","ports":["http",7,null]}}`, `{"apiVersion":"v1","kind":"Service","spec":{"ports":{"port":80}}}`},
	{`{"apiVersion":"v1","kind":"Service","spec":{"type":"NodePort","ports":[{"port":{"a":[1]}}]}}`, `{"apiVersion":"v1","kind":"Service","spec":[]}`},
	{`{"apiVersion":"v1","kind":"Service","spec":"none"}`, `{"apiVersion":"v1","kind":"Service"}`},
	{`{"apiVersion":"batch/v1","kind":"Job","spec":{"template":{"metadata":{"labels":"none"}}}}`, `{"apiVersion":"batch/v1","kind":"Job","spec":{"selector":{},"template":{"metadata":{"labels":{"job-name":"it"}}}}}`},
	{`{"apiVersion":"batch/v1","kind":"Job","spec":{"template":{}}}`, `{"apiVersion":"batch/v1","kind":"Job","spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"job-name":"it","x":"y"}}}}}`},
	{`{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","data":{"token":"aHVi"}}`, `{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","data":{"token":"bWVtYmVy"}}`},
	{`{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"volumeName":"v"}}`, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"volumeName":"w","storageClassName":"fast"}}`},
	{`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":2,"template":{"spec":{"volumes":"none","containers":[1,{"env":{}}],"serviceAccountName":["a"]}}}}`, `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":5,"paused":true},"status":{"replicas":5}}`},
	{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"app":"a","karmada.io/managed":"true"},"annotations":{"fairlead.dev/x":"y","a":"b"}}}`, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"team":"b"},"finalizers":["f"]}}`},
	{`{"apiVersion":"v1","kind":"ServiceAccount","secrets":[{"name":"a"},{"name":"a"},7,{}],"imagePullSecrets":"none"}`, `{"apiVersion":"v1","kind":"ServiceAccount","secrets":[{"name":"b"},{"name":"b"},{"name":3},null],"imagePullSecrets":[{"name":"c"}]}`},
	{`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/m"}]},{"name":"a"},1],"volumes":[{"name":"kube-api-access-x","projected":{}}]}}`, `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/n"},{"mountPath":"/n"}]},{"name":"a","volumeMounts":"none"}],"volumes":[{"name":"v"},{}]}}`},
	{`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","webhooks":[{"name":"a","clientConfig":{}},{"name":"a","clientConfig":{}},{"clientConfig":[]},1]}`, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","webhooks":[{"name":"a","clientConfig":{"caBundle":"A"}},{"name":"a","clientConfig":{"caBundle":7}},{}]}`},
	{`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","spec":{"caBundle":""}}`, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"annotations":{"cert-manager.io/inject-ca-from":"a/b"}},"spec":{"caBundle":"A"}}`},
	{`{"apiVersion":"v1","kind":"Pod","spec":{}}`, `{"apiVersion":"v1","kind":"Pod","spec":{"nodeName":"n"}}`},
}

// Whatever an object looks like: what is planned from it is the same the next time, so that nothing is written for ever, and what was
// observed stays as it was.
func FuzzManifest(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s[0]), []byte(s[1]), false)
		f.Add([]byte(s[1]), []byte(s[0]), true)
	}
	ownership := model.Identity{Hub: "h", Object: "w"}.Labels()
	f.Fuzz(func(t *testing.T, templateText, liveText []byte, autoscaled bool) {
		template, live := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if template.UnmarshalJSON(templateText) != nil || live.UnmarshalJSON(liveText) != nil || template.GroupVersionKind() != live.GroupVersionKind() {
			t.Skip("not objects of one kind")
		}
		same := func(what string, want, got *unstructured.Unstructured) {
			t.Helper()
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		templateBefore, liveBefore := template.DeepCopy(), live.DeepCopy()
		m, _, err := FromTemplate(template, policyv1alpha1.ConflictOverwrite)
		if err != nil {
			t.Skip("managedFields that cannot be read")
		}
		manifestBefore := m.DeepCopy()
		again, _, err := FromTemplate(m, policyv1alpha1.ConflictOverwrite)
		if err != nil {
			t.Fatal(err)
		}
		same("the manifest of a manifest", m, again)
		desired := Retain(m, live, ownership, autoscaled)
		same("what is written a second time", desired, Retain(m, desired, ownership, autoscaled))
		// What a cluster has injected is no drift: without it, the object is the same before and after it is written.
		bare := desired.DeepCopy()
		RemoveInjected(bare, m)
		again = bare.DeepCopy()
		RemoveInjected(again, m)
		same("without what is injected, twice", bare, again)
		Dependencies(template)
		same("the template", templateBefore, template)
		same("the live object", liveBefore, live)
		same("the manifest", manifestBefore, m)
		if resolution := ResolutionOf(m); resolution != policyv1alpha1.ConflictOverwrite {
			t.Errorf("the resolution becomes %s", resolution)
		}
		for key, value := range ownership {
			if desired.GetLabels()[key] != value {
				t.Errorf("what is written has labels %v", desired.GetLabels())
			}
		}
	})
}

// Each field of a pod that names a resource is found on its own, and nothing else is.
func TestEachDependency(t *testing.T) {
	for pod, want := range map[string]string{
		"volumes: [{configMap: {name: a}}]":                                                  "ConfigMap",
		"volumes: [{projected: {sources: [{configMap: {name: a}}]}}]":                        "ConfigMap",
		"initContainers: [{envFrom: [{configMapRef: {name: a}}]}]":                           "ConfigMap",
		"initContainers: [{env: [{valueFrom: {configMapKeyRef: {name: a, key: b}}}]}]":       "ConfigMap",
		"containers: [{envFrom: [{configMapRef: {name: a}}]}]":                               "ConfigMap",
		"containers: [{env: [{valueFrom: {configMapKeyRef: {name: a, key: b}}}]}]":           "ConfigMap",
		"volumes: [{secret: {secretName: a}}]":                                               "Secret",
		"volumes: [{projected: {sources: [{secret: {name: a}}]}}]":                           "Secret",
		"initContainers: [{envFrom: [{secretRef: {name: a}}]}]":                              "Secret",
		"initContainers: [{env: [{valueFrom: {secretKeyRef: {name: a, key: b}}}]}]":          "Secret",
		"containers: [{envFrom: [{secretRef: {name: a}}]}]":                                  "Secret",
		"containers: [{env: [{valueFrom: {secretKeyRef: {name: a, key: b}}}]}]":              "Secret",
		"imagePullSecrets: [{name: a}]":                                                      "Secret",
		"volumes: [{persistentVolumeClaim: {claimName: a}}]":                                 "PersistentVolumeClaim",
		"serviceAccountName: a":                                                              "ServiceAccount",
		"volumes: [{configMap: {name: ''}}, {name: a, emptyDir: {}}, {hostPath: {path: a}}]": "",
		"containers: [{name: a, image: a, env: [{name: a, value: a}]}]":                      "",
	} {
		got := ""
		for _, key := range Dependencies(adoptiontest.Object(t, "StatefulSet apps/v1\nspec: {template: {spec: {"+pod+"}}}")) {
			got += key.Kind.Kind
			if key.Name != "a" || key.Namespace != "shop" || key.Kind.Version != "v1" || key.Kind.Group != "" {
				t.Errorf("%s: got %v", pod, key)
			}
		}
		if got != want {
			t.Errorf("%s: got %q", pod, got)
		}
	}
}

// What the controllers of the hub keep in annotations holds for the hub only; annotations of users that look alike are theirs.
func TestIsAssignedAnnotation(t *testing.T) {
	for key, want := range map[string]bool{
		"deployment.kubernetes.io/revision": true, "pv.kubernetes.io/bind-completed": true, "volume.kubernetes.io/selected-node": true,
		"volume.beta.kubernetes.io/storage-provisioner": true, "kubernetes.io/service-account.uid": true, "deprecated.daemonset.template.generation": true,
		"kubernetes.io/service-account.name": false, "volume.kubernetes.io/other": false, "deployment.kubernetes.io": false,
		"example.com/deployment.kubernetes.io": false, "my.deployment.kubernetes.io/revision": false, "kubernetes.io/change-cause": false,
	} {
		if got := IsAssignedAnnotation(key); got != want {
			t.Errorf("%s: got %t", key, got)
		}
	}
}

func TestUserKeys(t *testing.T) {
	all := map[string]string{
		"karmada.io/managed": "", "work.karmada.io/x": "", "fairlead.dev/hub": "", AnnotationLastApplied: "",
		"app": "", "example.com/karmada.io": "", "notkarmada.io/x": "", "karmada.io.example.com/x": "", "my.fairlead.dev/x": "", "kubectl.kubernetes.io/restartedAt": "",
	}
	got := slices.Sorted(maps.Keys(UserKeys(all)))
	want := []string{"app", "example.com/karmada.io", "karmada.io.example.com/x", "kubectl.kubernetes.io/restartedAt", "my.fairlead.dev/x", "notkarmada.io/x"}
	if diff := cmp.Diff(want, got); diff != "" || len(all) != 10 {
		t.Error(diff)
	}
	if UserKeys(map[string]string{"fairlead.dev/hub": ""}) != nil {
		t.Error("no keys are not nil: an empty map would be written as a change")
	}
}

// A template with managedFields that cannot be read is refused: its assigned fields would go to all clusters.
func TestManagedFieldsThatCannotBeRead(t *testing.T) {
	template := adoptiontest.Object(t, "Service v1\nspec: {clusterIP: 10.0.0.1}")
	template.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"k:{":{}}`)}})
	if got, _, err := FromTemplate(template, policyv1alpha1.ConflictAbort); got != nil || err == nil {
		t.Errorf("got %v, %v", got, err)
	}
}

package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Fields of real kinds are compared in the tests of Helm releases and of environments.
func TestFirstDifference(t *testing.T) {
	const (
		pod  = "apiVersion: v1\nkind: Pod\n"
		boat = "apiVersion: harbour.test/v1\nkind: Boat\n"
	)
	for name, c := range map[string]struct{ desired, live, want string }{
		"a default in an atomic list": {
			pod + "spec: {tolerations: [{key: a}]}", pod + "spec: {tolerations: [{key: a, operator: Equal}]}", "",
		},
		"an atomic list that is longer": {
			pod + "spec: {tolerations: [{key: a}]}", pod + "spec: {tolerations: [{key: a}, {key: b}]}", "spec.tolerations",
		},
		"a quantity in another notation": {
			pod + "spec: {containers: [{name: a, resources: {limits: {cpu: 0.5}}}]}",
			pod + "spec: {containers: [{name: b}, {name: a, resources: {limits: {cpu: 500m}}}]}", "",
		},
		"an empty field of a known kind": {
			pod + "spec: {volumes: [{name: a, emptyDir: {}}]}", pod + "spec: {volumes: [{name: a, hostPath: {path: /}}]}",
			"spec.volumes[name=a].emptyDir",
		},
		"a zero value": {pod + "spec: {hostNetwork: false}", pod + "spec: {hostNetwork: true}", "spec.hostNetwork"},
		"an empty field of an unknown kind": {
			boat + "spec: {sails: {}, crew: []}", boat + "spec: {name: pequod}", "",
		},
		"an excluded annotation": {
			boat + "metadata: {annotations: {test/digest: a, b: c}}", boat + "metadata: {annotations: {test/digest: x, b: c}}", "",
		},
		"another annotation": {
			boat + "metadata: {annotations: {test/digest: a, test/b: c}}", boat + "metadata: {annotations: {test/digest: x, test/b: d}}",
			"metadata.annotations[test/b]",
		},
		"an owner and a finalizer of other clients of an unknown kind": {
			boat + "metadata: {finalizers: [a], ownerReferences: [{uid: a}]}",
			boat + "metadata: {finalizers: [b, a], ownerReferences: [{uid: b}, {uid: a}]}", "",
		},
		"an owner that is missing": {
			boat + "metadata: {ownerReferences: [{uid: a}]}", boat + "metadata: {ownerReferences: [{uid: b}]}", "metadata.ownerReferences[uid=a]",
		},
		"the first of several": {boat + "spec: {b: 1, a: 1}", boat + "spec: {b: 2, a: 2}", "spec.a"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FirstDifference(parse(t, c.desired), parse(t, c.live), "metadata.annotations[test/digest]"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

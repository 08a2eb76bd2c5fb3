package objects

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

func TestDrift(t *testing.T) {
	// A live StatefulSet, but for the parts that a case changes.
	live := func(labels, replicas, containers, args, volumes string) string {
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {labels: %s}
spec:
  replicas: %s
  template:
    spec:
      containers: [%s]
      initContainers: [{name: init, args: %s}]
      volumes: %s
`, labels, replicas, containers, args, volumes)
	}
	const (
		labels     = "{app: a}"
		containers = "{name: sql, image: a, resources: {requests: {cpu: 0.5}}}, {name: http, image: b}"
		args       = "[one, two]"
		volumes    = "[{name: scratch, emptyDir: {}}]"
		at         = "spec.template.spec"
	)
	want := live(labels, "2", containers, args, volumes)
	cases := map[string]struct{ have, want string }{
		"the same": {want, ""},
		"with defaults": {live("{app: a}, annotations: {theirs: x}, uid: u", "2",
			"{name: sql, image: a, imagePullPolicy: Always, resources: {requests: {cpu: 500m}}}, {name: http, image: b, tty: true}",
			args+", image: x", "[{name: scratch, emptyDir: {medium: \"\"}}]") + "status: {replicas: 2}", ""},
		"with what others add, in another order": {live("{app: a, team: b}", "2",
			"{name: extra}, {name: http, image: b}, {name: sql, image: a, resources: {requests: {cpu: 500m}}}",
			args, "[{name: theirs, emptyDir: {}}, {name: scratch, emptyDir: {}}]"), ""},
		"a number": {live(labels, "3", containers, args, volumes), "spec.replicas was changed by another client"},
		"an element of a named list": {live(labels, "2", strings.ReplaceAll(containers, "image: b", "image: c"), args, volumes),
			at + ".containers[name=http].image was changed by another client"},
		"an element that is gone": {live(labels, "2", strings.ReplaceAll(containers, "http", "other"), args, volumes),
			at + ".containers[name=http] was changed by another client"},
		"a list in another order": {live(labels, "2", containers, "[two, one]", volumes),
			at + ".initContainers[name=init].args[0] was changed by another client"},
		"a longer list": {live(labels, "2", containers, "[one, two, three]", volumes),
			at + ".initContainers[name=init].args was changed by another client"},
		"a label that is gone": {live("{}", "2", containers, args, volumes), "metadata.labels was changed by another client"},
		"a volume of another kind": {live(labels, "2", containers, args, "[{name: scratch, hostPath: {path: /}}]"),
			at + ".volumes[name=scratch].emptyDir was changed by another client"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Drift(parsed(t, want, "1"), parsed(t, c.have, "1")); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestDriftOfWhatIsWanted: what is no longer wanted is noticed although nothing else is missing.
func TestDriftOfWhatIsWanted(t *testing.T) {
	cases := map[string]struct{ want, have, drift string }{
		"something new":           {"spec: {a: 1, b: 2}", "spec: {a: 1}", "spec.b changes"},
		"something no longer":     {"spec: {a: 1}", "spec: {a: 1, b: 2}", "fields are removed"},
		"another value":           {"spec: {a: 2}", "spec: {a: 1}", "spec.a changes"},
		"nothing where there was": {"spec: {a: {}}", "spec: {}", "fields are removed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Drift(parsed(t, c.want, "new"), parsed(t, c.have, "old")); got != c.drift {
				t.Errorf("got %q, want %q", got, c.drift)
			}
		})
	}
}

func parsed(t *testing.T, text, applied string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha2.AnnotationApplied] = applied
	u.SetAnnotations(annotations)
	return u
}

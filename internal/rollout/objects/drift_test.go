package objects

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

func TestDrift(t *testing.T) {
	const want = `
metadata: {labels: {app: a}}
spec:
  replicas: 2
  ports: [{name: sql, port: 6875}, {name: http, port: 6876}]
  args: [one, two]
  volumes: [{name: scratch, emptyDir: {}}]
`
	cases := map[string]struct{ have, want string }{
		"the same": {want, ""},
		"with defaults": {`
metadata: {labels: {app: a}, annotations: {theirs: x}, uid: u}
spec:
  replicas: 2
  ports: [{name: sql, port: 6875, protocol: TCP}, {name: http, port: 6876, protocol: TCP}]
  args: [one, two]
  volumes: [{name: scratch, emptyDir: {medium: ""}}]
  clusterIP: 10.0.0.1
status: {ready: true}`, ""},
		"with what others add, in another order": {`
metadata: {labels: {app: a, team: b}}
spec:
  replicas: 2
  ports: [{name: extra, port: 1}, {name: http, port: 6876}, {name: sql, port: 6875}]
  args: [one, two]
  volumes: [{name: theirs, emptyDir: {}}, {name: scratch, emptyDir: {}}]`, ""},
		"a number": {`
metadata: {labels: {app: a}}
spec:
  replicas: 3
  ports: [{name: sql, port: 6875}, {name: http, port: 6876}]
  args: [one, two]
  volumes: [{name: scratch, emptyDir: {}}]`, "spec.replicas was changed by another client"},
		"an element of a named list": {`
metadata: {labels: {app: a}}
spec:
  replicas: 2
  ports: [{name: sql, port: 6875}, {name: http, port: 80}]
  args: [one, two]
  volumes: [{name: scratch, emptyDir: {}}]`, "spec.ports[name=http].port was changed by another client"},
		"an element that is gone": {`
metadata: {labels: {app: a}}
spec:
  replicas: 2
  ports: [{name: sql, port: 6875}]
  args: [one, two]
  volumes: [{name: scratch, emptyDir: {}}]`, "spec.ports[name=http] was changed by another client"},
		"a list in another order": {`
metadata: {labels: {app: a}}
spec:
  replicas: 2
  ports: [{name: sql, port: 6875}, {name: http, port: 6876}]
  args: [two, one]
  volumes: [{name: scratch, emptyDir: {}}]`, "spec.args[0] was changed by another client"},
		"a longer list": {`
metadata: {labels: {app: a}}
spec:
  replicas: 2
  ports: [{name: sql, port: 6875}, {name: http, port: 6876}]
  args: [one, two, three]
  volumes: [{name: scratch, emptyDir: {}}]`, "spec.args was changed by another client"},
		"a label that is gone": {`
metadata: {}
spec:
  replicas: 2
  ports: [{name: sql, port: 6875}, {name: http, port: 6876}]
  args: [one, two]
  volumes: [{name: scratch, emptyDir: {}}]`, "metadata.labels was changed by another client"},
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

package revision_test

import (
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/controlplane"
	"github.com/fairlead/fairlead/test/harness"
)

// The profile comes first, then what the user says, then what Fairlead has to decide. That an Istio hands its profile on is
// in package istio.
func TestValues(t *testing.T) {
	t.Parallel()
	env := func(name, value string) v1.Values {
		return v1.Values{"pilot": map[string]any{"env": map[string]any{name: value}}}
	}
	cases := map[string]struct {
		profile string
		values  v1.Values
		// env are variables of istiod's container; those that are empty must not be there.
		env map[string]string
		// mesh are parts of the mesh's configuration.
		mesh []string
	}{
		"nothing": {
			env: map[string]string{"PILOT_ENABLE_AMBIENT": ""},
		},
		"default": {
			profile: "default",
			env:     map[string]string{"PILOT_ENABLE_AMBIENT": ""},
		},
		"ambient": {
			profile: "ambient",
			env:     map[string]string{"PILOT_ENABLE_AMBIENT": "true"},
			mesh:    []string{"ISTIO_META_ENABLE_HBONE"},
		},
		"demo and more": {
			profile: "demo",
			values:  env("EXTRA", "yes"),
			env:     map[string]string{"EXTRA": "yes", "PILOT_TRACE_SAMPLING": "100"},
			mesh:    []string{"accessLogFile: /dev/stdout"},
		},
		"ambient but for something": {
			profile: "ambient",
			values:  env("PILOT_ENABLE_AMBIENT", "false"),
			env:     map[string]string{"PILOT_ENABLE_AMBIENT": "false"},
			mesh:    []string{"ISTIO_META_ENABLE_HBONE"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			revision := makeRevision("mesh", "somewhere", "v1.26.0")
			revision.Spec.Values = c.values
			if c.profile != "" {
				revision.Spec.Values = v1.Values{"profile": c.profile}
				maps.Copy(revision.Spec.Values, c.values)
			}
			release := types.NamespacedName{Namespace: "somewhere", Name: "mesh-istiod"}
			var d appsv1.Deployment
			var mesh corev1.ConfigMap
			for _, object := range rendered(t, release, "v1.26.0", "istiod", controlplane.Values(revision)) {
				into := map[string]any{"Deployment istiod-mesh": &d, "ConfigMap istio-mesh": &mesh}[object.GetKind()+" "+object.GetName()]
				if into == nil {
					continue
				}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
					t.Fatal(err)
				}
			}
			runsWith(t, &d, "mesh", c.env)
			// Where the mesh looks for its control plane.
			for _, part := range append(c.mesh, "istiod-mesh.somewhere.svc:15012") {
				if !strings.Contains(mesh.Data["mesh"], part) {
					t.Errorf("%s is not part of\n%s", part, mesh.Data["mesh"])
				}
			}
		})
	}
}

// runsWith checks the environment of a revision's istiod, and that it is told what it is.
func runsWith(t testing.TB, d *appsv1.Deployment, revision string, want map[string]string) {
	t.Helper()
	if got := d.Labels[v1.LabelRevision]; got != revision {
		t.Fatalf("the Deployment is of revision %q", got)
	}
	has := map[string]string{}
	for _, variable := range d.Spec.Template.Spec.Containers[0].Env {
		has[variable.Name] = variable.Value
	}
	for name, value := range want {
		if has[name] != value {
			t.Errorf("%s is %q, want %q", name, has[name], value)
		}
	}
}

// A revision that a user creates, and no Istio owns.
func TestRevisionWithoutIstio(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	namespace, name := w.namespace(t), shortName(t)
	revision := makeRevision(name, namespace, "v1.26.0")
	revision.Spec.Values = v1.Values{
		"profile": "ambient", "revision": name,
		"global": map[string]any{"istioNamespace": namespace},
	}
	harness.Create(t, w, revision)
	ready(t, w, revision)
	var d appsv1.Deployment
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "istiod-" + name}, &d); err != nil {
		t.Fatal(err)
	}
	runsWith(t, &d, name, map[string]string{"REVISION": name, "PILOT_ENABLE_AMBIENT": "true"})

	harness.Change(t, w, revision, func(r *v1.IstioRevision) { r.Spec.Version = "v1.31.0" })
	ready(t, w, revision)
	if releases, err := w.releases(t.Context(), namespace); err != nil || releases[name+"-istiod"] != "deployed v1.31.0" {
		t.Errorf("the releases are %v: %v", releases, err)
	}
	w.delete(t, revision)
	w.nothingLeft(t, containing(name))
}

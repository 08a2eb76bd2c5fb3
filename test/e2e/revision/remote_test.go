package revision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// remote are values for a control plane that runs elsewhere, at an address.
func remote(address string, more ...func(map[string]any)) v1.Values {
	values := map[string]any{"profile": "remote", "global": map[string]any{"remotePilotAddress": address}}
	for _, change := range more {
		change(values)
	}
	return values
}

func whereItIsConfigured(values map[string]any) {
	values["global"].(map[string]any)["configCluster"] = true
}

func withLocalInjector(values map[string]any) {
	values["istiodRemote"] = map[string]any{"enabledLocalInjectorIstiod": true}
}

// Whatever the charts install, the operator may see to, and istiod gets no more from them than the operator has.
func TestRemoteProfilesAreCovered(t *testing.T) {
	t.Parallel()
	release, err := chart.Render("fairlead", "fairlead", nil)
	if err != nil {
		t.Fatal(err)
	}
	may := grantsOf(t, slices.DeleteFunc(release.Objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() != "ClusterRole" || object.GetName() != "fairlead:fairlead-revision"
	}))
	istiod := grantsOf(t, istiodRole(t))
	for _, version := range chartVersions {
		for name, values := range map[string]v1.Values{
			"by address":              remote("192.0.2.7"),
			"by name":                 remote("istiod.example.com"),
			"where it is configured":  remote("192.0.2.7", whereItIsConfigured),
			"with a local injector":   remote("192.0.2.7", withLocalInjector),
			"that is found elsewhere": {"profile": "remote"},
		} {
			// They are not looked at here, and take longer than all the rest.
			values["base"] = withoutCRDs()
			for _, of := range []string{"base", "istiod"} {
				objects := rendered(t, types.NamespacedName{Namespace: "istio-system", Name: of}, version, of, values)
				for _, lacking := range append(beyond(may, needed(objects)), beyond(istiod, grantsOf(t, objects))...) {
					t.Errorf("%s of %s, %s: the operator may not %s", of, version, name, lacking)
				}
			}
		}
	}
}

// needed is what it takes to keep objects. Istio's CRDs are known by their names.
func needed(objects []*unstructured.Unstructured) []grant {
	var grants []grant
	for _, object := range objects {
		if object.GetKind() == customs.Kind {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		for _, verb := range []string{"get", "list", "watch", "create", "patch", "delete"} {
			grants = append(grants, grant{resource.Group, resource.Resource, verb, ""})
		}
	}
	return grants
}

func TestRemoteControlPlane(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	for version, c := range map[string]struct {
		kind   schema.GroupVersionKind
		astray func(map[string]any)
	}{
		"v1.26.0": {schema.GroupVersionKind{Version: "v1", Kind: "Endpoints"}, set("192.0.2.9", "subsets", 0, "addresses", 0, "ip")},
		"v1.31.1": {schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}, func(slice map[string]any) {
			at(slice, "endpoints", 0).(map[string]any)["addresses"] = []any{"192.0.2.9"}
		}},
	} {
		t.Run(c.kind.Kind, func(t *testing.T) {
			t.Parallel()
			began := w.operator.Log.Len()
			revision := makeRevision(shortName(t), w.namespace(t), version)
			revision.Spec.Values = remote("192.0.2.7")
			ready(t, w, harness.Create(t, w, revision))
			leads := installed{w, c.kind, client.ObjectKey{Namespace: revision.Spec.Namespace, Name: "istiod-" + revision.Name}}
			live, err := leads.get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before := content(live)

			leads.edit(t, c.astray)
			leads.becomes(t, before)
			w.delete(t, live)
			leads.becomes(t, before)

			t.Log("what it looks like on the API server is no reason to restore it again")
			w.namespace(t, v1.LabelRevision, revision.Name)
			says(t, w, revision, v1.ConditionInUse, v1.ReasonReferencedByWorkloads)
			// What the operator has printed is in the log a moment later.
			wait.Until(t, func(context.Context) error {
				restored := strings.Count(w.operator.Log.Since(began), fmt.Sprintf(`action=restore object="%s"`, leads))
				if restored != 2 {
					return fmt.Errorf("%s was restored %d times, want 2", leads, restored)
				}
				return nil
			})

			if strings.Contains(w.operator.Log.Since(0), "Endpoints is deprecated") {
				t.Error("the log comments on what Istio's charts install")
			}

			w.delete(t, revision)
			wait.Until(t, func(ctx context.Context) error {
				if _, err := leads.get(ctx); err == nil {
					return errors.New("it is still there")
				} else {
					return client.IgnoreNotFound(err)
				}
			})
		})
	}
}

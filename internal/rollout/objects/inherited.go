package objects

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// SharedNames are the objects that all generations share, whatever the spec says, but for certificates.
func SharedNames(m *v1alpha2.Materialize) []passage.Object {
	n := NamesOf(m)
	var all []passage.Object
	for _, kind := range []schema.GroupVersionKind{KindServiceAccount, KindRole, KindRoleBinding, KindService} {
		all = append(all, IdentityOf(m, kind, n.Environmentd()))
	}
	for _, app := range []string{AppBalancerd, AppConsole} {
		all = append(all, IdentityOf(m, KindService, n.Of(app)), IdentityOf(m, KindDeployment, n.Of(app)))
	}
	return all
}

// HasReplicas tells whether a Deployment has the desired replicas.
func HasReplicas(want, have *unstructured.Unstructured) bool {
	wanted, _, _ := unstructured.NestedInt64(want.Object, "spec", "replicas")
	has, found, _ := unstructured.NestedInt64(have.Object, "spec", "replicas")
	return found && has == wanted
}

// KeepTemplate has the pods of a Deployment stay as they are, if there is one.
func KeepTemplate(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	if have == nil {
		return want
	}
	want = want.DeepCopy()
	for _, field := range []string{"selector", "template"} {
		if value, found, err := unstructured.NestedMap(have.Object, "spec", field); err == nil && found {
			_ = unstructured.SetNestedMap(want.Object, value, "spec", field)
		}
	}
	return want
}

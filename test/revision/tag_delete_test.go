package revision_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// A tag takes its webhook along, and an Istio all but the CRDs, which hold what its users have written. Not in parallel
// with others, because it looks at the whole cluster.
func TestNothingIsLeft(t *testing.T) {
	w := theWorld(t)
	name, system := shortName(t), w.namespace(t)
	w.namespace(t, v1.LabelRevision, name)
	everything := func() []string {
		t.Helper()
		names, err := w.inventory(t.Context(), func(kind string, o client.Object) bool {
			ofIstio := kind == "CustomResourceDefinition" && strings.HasSuffix(o.GetName(), ".istio.io")
			// What is put into each namespace, in its own time.
			usual := slices.Contains([]string{"kube-root-ca.crt", "istio-ca-root-cert", "default"}, o.GetName())
			return !ofIstio && !usual
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	before := everything()

	istio := create(t, w, revisionBased(name, system, "v1.31.1", 0))
	ready(t, w, istio)
	installed := everything()
	tag := create(t, w, makeTag(name, v1.IstioKind, name))
	w.points(t, tag, name+"-v1-31-1")
	w.injects(t, name, system+"/istiod-"+name+"-v1-31-1")
	w.delete(t, tag)
	if left := without(everything(), installed); len(left) > 0 {
		t.Errorf("the tag has left %q", left)
	}

	w.delete(t, istio)
	if left := without(everything(), before); len(left) > 0 {
		t.Errorf("the Istio has left %q", left)
	}
	crds, err := w.inventory(t.Context(), func(kind string, o client.Object) bool {
		return kind == "CustomResourceDefinition" && o.GetName() == "virtualservices.networking.istio.io"
	})
	if err != nil || len(crds) != 1 {
		t.Errorf("Istio's CRDs are gone: %v, %v", crds, err)
	}
}

func without(names, known []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(known, name) })
}

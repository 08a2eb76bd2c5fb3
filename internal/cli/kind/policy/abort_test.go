package policy

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/passage"
)

// Before an abort, users see which objects it changes.
func TestAbortImpactNamesObjects(t *testing.T) {
	r := connect.Resource{
		Mapping: &meta.RESTMapping{GroupVersionKind: policyv1alpha1.GroupVersion.WithKind("PropagationPolicy")},
		Key:     client.ObjectKey{Namespace: "shop", Name: "p"},
	}
	in := func(cluster, name string) passage.Object {
		return passage.Object{Cluster: cluster, APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
	}
	print := func(impact forecast.AbortImpact) string {
		var out bytes.Buffer
		printAbortImpact(&out, r, impact)
		return out.String()
	}
	got := print(forecast.AbortImpact{Restored: []passage.Object{in("west", "cart")}, Released: []passage.Object{in("east", "cart"), in("west", "pay")}})
	want := `propagationpolicy.policy.karmada.io/p releases 3 objects in 2 clusters. 1 of them changed when they
were taken over; their originals are restored, which may restart pods. Objects that Fairlead has
created stay. The policy takes nothing over, until annotation fairlead.dev/aborted is removed.

CLUSTER   ACTION    OBJECT                 WHY
west      restore   Deployment shop/cart   the takeover changed the object
east      orphan    Deployment shop/cart   stays as it is, without the labels of the hub
west      orphan    Deployment shop/pay    stays as it is, without the labels of the hub

`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var many forecast.AbortImpact
	for i := range 50 {
		many.Released = append(many.Released, in("west", fmt.Sprint("a", i)))
	}
	if got := print(many); strings.Count(got, "\n") > 30 || !strings.Contains(got, "\n... and 0 more to restore, 30 more to orphan\n") {
		t.Error(got)
	}
}

package generate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// A tenant is told that others have the tags of his MeshService, and neither who they are nor how many.
func TestOthersAreNotNotified(t *testing.T) {
	r := &reconciler{Options: Options{
		ZoneInfo: desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"},
	}}
	app := map[string]string{"app": "backend"}
	service := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backend"}}
	service.Spec.Selector.DataplaneTags = app
	of := func(namespaces ...string) *metav1.Condition {
		var all []*kumav1alpha1.Dataplane
		for _, namespace := range namespaces {
			one := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
			one.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: app}}
			all = append(all, one)
		}
		r.countProxies(service, all)
		return meta.FindStatusCondition(service.Status.Conditions, kumav1alpha1.ConditionResolved).DeepCopy()
	}
	if got := of("shop"); got != nil {
		t.Errorf("with his own alone he is told %+v", got)
	}
	one := of("shop", "bank")
	if one == nil || one.Reason != kumav1alpha1.ReasonOtherNamespaces || !strings.Contains(one.Message, "move the MeshService to namespace kuma-system") {
		t.Fatalf("he is told %+v", one)
	}
	if strings.Contains(one.Message, "bank") {
		t.Errorf("he is told who: %s", one.Message)
	}
	if more := of("bank", "shop", "till"); more.Message != one.Message {
		t.Errorf("with more of them he is told %q instead of %q", more.Message, one.Message)
	}
}

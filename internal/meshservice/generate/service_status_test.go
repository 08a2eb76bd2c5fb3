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
	r := &reconciler{cache: namespaceReader{}, Options: Options{
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
		if err := r.countProxies(t.Context(), service, all); err != nil {
			t.Fatal(err)
		}
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

// The status of a MeshMultiZoneService lists so many MeshServices and no more, and says how many there are.
func TestMatchedIsBounded(t *testing.T) {
	multiZone := &kumav1alpha1.MeshMultiZoneService{}
	match := func(count int) *metav1.Condition {
		multiZone.Status.MeshServices = make([]kumav1alpha1.MatchedMeshService, count)
		boundMatched(multiZone)
		return meta.FindStatusCondition(multiZone.Status.Conditions, kumav1alpha1.ConditionResolved)
	}
	if got := match(maxMatched); got != nil || len(multiZone.Status.MeshServices) != maxMatched {
		t.Errorf("at the limit it lists %d, and says %+v", len(multiZone.Status.MeshServices), got)
	}
	got := match(5000)
	if got == nil || got.Reason != kumav1alpha1.ReasonTruncated || !strings.Contains(got.Message, "5000") || len(multiZone.Status.MeshServices) != maxMatched {
		t.Errorf("beyond it, it lists %d, and says %+v", len(multiZone.Status.MeshServices), got)
	}
	if got := match(1); got != nil {
		t.Errorf("afterwards it says %+v", got)
	}
}

// What tenants write into conditions and events is cut: the API server would refuse a longer text.
func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("n", 100_000)
	service := &kumav1alpha1.MeshService{}
	setCondition(service, kumav1alpha1.ConditionPortsAgree, metav1.ConditionFalse, kumav1alpha1.ReasonPortConflict, long)
	if got := len(service.Status.Conditions[0].Message); got > 4000 {
		t.Errorf("a condition has %d bytes", got)
	}
	if got := len(namesText([]string{long, long, long, long, long, long})); got > 2000 {
		t.Errorf("six names have %d bytes", got)
	}
	dataplane := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "one"}}
	for range 5 {
		dataplane.Spec.Networking.Inbound = append(dataplane.Spec.Networking.Inbound, kumav1alpha1.Inbound{Port: 80, Tags: map[string]string{kumav1alpha1.TagService: long}})
	}
	where := desired.ZoneInfo{Environment: desired.Kubernetes, SystemNamespace: "kuma-system"}
	text := refusalsText(desired.RefusalsOf(dataplane, desired.NamespaceRules{}, where))
	if len(text) > 1200 || !strings.HasSuffix(text, "and 3 more") {
		t.Errorf("it is told in %d bytes: %s", len(text), text)
	}
}

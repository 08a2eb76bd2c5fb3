package convert

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// A kind that Fairlead has is known, and those with entries are converted.
func TestKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kumav1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	policies := 0
	for kind := range scheme.KnownTypes(kumav1alpha1.GroupVersion) {
		object, err := scheme.New(kumav1alpha1.GroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		// Others of the group are those that every group has, such as ListOptions.
		if !strings.Contains(kind, "Mesh") && kind != kumav1alpha1.DataplaneKind && kind != kumav1alpha1.ZoneIngressKind || strings.HasSuffix(kind, "List") {
			continue
		}
		_, isPolicy := object.(kumav1alpha1.Policy)
		if isPolicy {
			policies++
		}
		if hasTo.Has(kind) != isPolicy || hasNoTo.Has(kind) == isPolicy {
			t.Errorf("%s: converted %v, nothing to convert %v", kind, hasTo.Has(kind), hasNoTo.Has(kind))
		}
	}
	if policies < 6 {
		t.Errorf("there are %d policies", policies)
	}
}

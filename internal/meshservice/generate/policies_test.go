package generate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

func TestResolvedOf(t *testing.T) {
	service := policy.Finding{Field: "spec.to[1].targetRef.labels", Problem: "there is no MeshService with these labels", Remedy: "correct the labels", Generated: true}
	tag := policy.Finding{Field: "spec.to[0].targetRef.name", Problem: "there is no kuma.io/service x", Remedy: "correct the name"}
	large := policy.Finding{Field: "spec.to[0].rules", Problem: "257 matches are more than 256", Remedy: "split the entry", ExceedsLimit: true}
	const disabled, everywhere = kumav1alpha1.ModeDisabled, kumav1alpha1.ModeEverywhere
	cases := map[string]struct {
		findings []policy.Finding
		mode     kumav1alpha1.Mode
		want     metav1.ConditionStatus
		message  string
	}{
		"nothing":                     {nil, disabled, metav1.ConditionTrue, "all references are resolved"},
		"a MeshService":               {[]policy.Finding{service}, everywhere, metav1.ConditionFalse, "spec.to[1].targetRef.labels: there is no MeshService with these labels; correct the labels"},
		"a MeshService that may come": {[]policy.Finding{service}, disabled, metav1.ConditionUnknown, "MeshServices are not generated while the mesh is Disabled: spec.to[1].targetRef.labels"},
		"a tag, too":                  {[]policy.Finding{tag, service}, disabled, metav1.ConditionFalse, "spec.to[0].targetRef.name: there is no kuma.io/service x; correct the name"},
		"an entry that is too large":  {[]policy.Finding{large, service}, disabled, metav1.ConditionFalse, "spec.to[0].rules: 257 matches are more than 256; split the entry"},
	}
	for findings, want := range map[*[]policy.Finding]string{
		{large, service}: kumav1alpha1.ReasonTooLarge, {large, tag}: kumav1alpha1.ReasonRefersToNothing, {service}: kumav1alpha1.ReasonDisabled,
	} {
		if got := resolvedCondition(*findings, disabled); got.Reason != want {
			t.Errorf("the reason is %s, want %s", got.Reason, want)
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := resolvedCondition(c.findings, c.mode); got.Status != c.want || got.Message != c.message {
				t.Errorf("%s: %s", got.Status, got.Message)
			}
		})
	}
}

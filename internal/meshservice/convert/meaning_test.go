package convert

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"sigs.k8s.io/yaml"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// What is added must say of a MeshService what the old entries say of it: with them, and when they are gone.
func TestConvertedMeansTheSame(t *testing.T) {
	byNumber := func(port uint32) string { return strconv.Itoa(int(port)) }
	byName := func(port uint32) string { return "port-" + strconv.Itoa(int(port)) }
	for name, c := range map[string]struct {
		file    string
		options Options
		section func(uint32) string
		// leftOver: some entries are left to a person, so the old ones are still needed.
		leftOver bool
	}{
		"ports without names":             {"kubernetes", Options{}, byNumber, false},
		"ports with names":                {"kubernetes", Options{Ports: namedPorts}, byName, false},
		"beside entries for MeshServices": {"rivals", Options{}, byNumber, true},
		"some entries of a tag":           {"partial", Options{}, byNumber, true},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := os.ReadFile("testdata/" + c.file + ".in.yaml")
			if err != nil {
				t.Fatal(err)
			}
			out, _, err := Convert(in, c.options)
			if err != nil {
				t.Fatal(err)
			}
			for _, service := range []string{"demo-app_kuma-demo_svc_5000", "demo-app_shop_svc_5000", "till_shop_svc_80", "desk_shop_svc_80", "last_shop_svc_80"} {
				name, namespace, port, _ := model.ParseKubernetesTag(service)
				for _, zone := range []string{"east", "west"} {
					key := model.Key{Kind: model.MeshService, Name: name, Namespace: namespace, Zone: zone, Mesh: "default", Port: port}
					destination := model.Destination{Section: c.section(port), Target: model.Target{Key: key, Name: name, Namespace: namespace}}
					before := effect(t, in, destination, false)
					if got := effect(t, out, destination, false); got.Fingerprint() != before.Fingerprint() {
						t.Errorf("%s in %s, with the old entries: %+v, want %+v", service, zone, got, before)
					}
					if got := effect(t, out, destination, true); !c.leftOver && got.Fingerprint() != before.Fingerprint() {
						t.Errorf("%s in %s, without the old entries: %+v, want %+v", service, zone, got, before)
					}
				}
				tag := model.Destination{Target: model.Target{Key: model.TagKey(service)}}
				was, is := effect(t, in, tag, false), effect(t, out, tag, false)
				if was.Fingerprint() != is.Fingerprint() {
					t.Errorf("the tag %s has another effect: %+v, was %+v", service, is, was)
				}
			}
		})
	}
}

// effect of the policies in a file, perhaps without their old entries.
func effect(t *testing.T, text []byte, to model.Destination, onlyNew bool) *policy.Effective {
	t.Helper()
	var policies []policy.Policy
	for _, d := range documentsIn(text) {
		var head header
		if err := yaml.Unmarshal(d.text, &head); err != nil {
			t.Fatal(err)
		}
		read := func(into policy.Policy) {
			if err := yaml.Unmarshal(d.text, into); err != nil {
				t.Fatal(err)
			}
			policies = append(policies, into)
		}
		old := func(r kumav1alpha1.ToTargetRef) bool { return onlyNew && r.Name != "" && r.Namespace == "" }
		switch head.Kind {
		case kumav1alpha1.MeshTimeoutKind:
			p := &kumav1alpha1.MeshTimeout{}
			read(p)
			p.Spec.To = slices.DeleteFunc(p.Spec.To, func(e kumav1alpha1.MeshTimeoutTo) bool { return old(e.TargetRef) })
		case kumav1alpha1.MeshRetryKind:
			p := &kumav1alpha1.MeshRetry{}
			read(p)
			p.Spec.To = slices.DeleteFunc(p.Spec.To, func(e kumav1alpha1.MeshRetryTo) bool { return old(e.TargetRef) })
		case kumav1alpha1.MeshCircuitBreakerKind:
			p := &kumav1alpha1.MeshCircuitBreaker{}
			read(p)
			p.Spec.To = slices.DeleteFunc(p.Spec.To, func(e kumav1alpha1.MeshCircuitBreakerTo) bool { return old(e.TargetRef) })
		case kumav1alpha1.MeshLoadBalancingStrategyKind:
			p := &kumav1alpha1.MeshLoadBalancingStrategy{}
			read(p)
			p.Spec.To = slices.DeleteFunc(p.Spec.To, func(e kumav1alpha1.MeshLoadBalancingStrategyTo) bool { return old(e.TargetRef) })
		}
	}
	set := policy.Compile(policies, desired.ZoneInfo{Environment: desired.Universal})
	proxy := model.Proxy{Inbounds: []map[string]string{{kumav1alpha1.TagService: "cart_shop_svc_80"}}}
	return set.Resolve(set.Class(proxy), to)
}

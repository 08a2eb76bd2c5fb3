package policy

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

var onKubernetes = desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}

// policiesIn reads policies as users write them. One without a namespace is in kuma-system.
func policiesIn(t testing.TB, text string) []Policy {
	t.Helper()
	var all []Policy
	for document := range strings.SplitSeq(text, "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatal(err, document)
		}
		p := map[string]Policy{
			"MeshTimeout":               &kumav1alpha1.MeshTimeout{},
			"MeshRetry":                 &kumav1alpha1.MeshRetry{},
			"MeshCircuitBreaker":        &kumav1alpha1.MeshCircuitBreaker{},
			"MeshLoadBalancingStrategy": &kumav1alpha1.MeshLoadBalancingStrategy{},
			"MeshHTTPRoute":             &kumav1alpha1.MeshHTTPRoute{},
			"MeshTCPRoute":              &kumav1alpha1.MeshTCPRoute{},
		}[head.Kind]
		if err := yaml.UnmarshalStrict([]byte(document), p); err != nil {
			t.Fatal(err, document)
		}
		if p.GetNamespace() == "" {
			p.SetNamespace("kuma-system")
		}
		all = append(all, p)
	}
	return all
}

// timeout is a MeshTimeout for all proxies, of which each entry is for a targetRef in YAML.
func timeout(name, wait string, targetRefs ...string) string {
	return said("MeshTimeout", name, "{connectionTimeout: "+wait+"}", targetRefs...)
}

func said(kind, name, conf string, targetRefs ...string) string {
	text := "kind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n  to:"
	for _, ref := range targetRefs {
		text += "\n  - {targetRef: " + ref + ", default: " + conf + "}"
	}
	return text
}

func together(policies ...string) string { return strings.Join(policies, "\n---\n") }

func tag(service string) model.Destination {
	return model.Destination{Target: model.Target{Key: model.TagKey(service)}}
}

// demoApp is a port of the MeshService demo-app in kuma-demo of the own zone.
func demoApp(port uint32, section string) model.Destination {
	return service("demo-app", "kuma-demo", "east", port, section)
}

// service is a port of a MeshService of the zone east, or one that was synced into it.
func service(name, namespace, zone string, port uint32, section string) model.Destination {
	labels := map[string]string{
		kumav1alpha1.LabelDisplayName: name, kumav1alpha1.LabelZone: zone, "team": name + "s",
	}
	if namespace != "" {
		labels[kumav1alpha1.LabelNamespace] = namespace
	}
	d := model.Destination{Section: section, Local: zone == "east", Target: model.Target{
		Key:  model.Key{Kind: model.MeshService, Name: name, Namespace: namespace, Zone: zone, Mesh: "default", Port: port},
		Name: name, Namespace: namespace, Labels: labels,
	}}
	if !d.Local {
		d.Name, d.Namespace = name+"-5f7c", "kuma-system"
	} else if namespace == "" {
		d.Namespace = "kuma-system"
	}
	return d
}

func multiZone(name string, port uint32, section string) model.Destination {
	return model.Destination{Section: section, Target: model.Target{
		Key:  model.Key{Kind: model.MeshMultiZoneService, Name: name, Namespace: "kuma-system", Mesh: "default", Port: port},
		Name: name, Namespace: "kuma-system", Labels: map[string]string{"team": "demo-apps"},
	}}
}

// cart is a proxy in the namespace shop.
func cart() model.Proxy {
	return model.Proxy{
		ID:     model.ProxyID{Mesh: "default", Namespace: "shop", Name: "cart-1"},
		Labels: map[string]string{"app": "cart"},
		Inbounds: []map[string]string{
			{kumav1alpha1.TagService: "cart_shop_svc_80", "version": "1"},
			{kumav1alpha1.TagService: "cart_shop_svc_90", "version": "2"},
		},
	}
}

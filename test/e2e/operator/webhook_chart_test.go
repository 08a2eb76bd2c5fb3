package operator_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestChartCertificates(t *testing.T) {
	const mounted, dir = "webhook-certificate", "--webhook-certificate-dir=/etc/fairlead/webhook"
	cases := map[string]struct {
		values map[string]any
		kinds  []string // that depend on it
		args   []string
		secret string // that is mounted
	}{
		"self-signed, unless somebody says otherwise": {
			nil, []string{"Role"},
			[]string{"--webhook-certificate-source=self-signed", "--webhook-certificate-secret=fairlead-webhook-certificate"}, "",
		},
		"from cert-manager": {
			certificateFrom("cert-manager", ""), []string{"Certificate", "Issuer"},
			[]string{"--webhook-certificate-source=cert-manager", dir}, "fairlead-webhook-certificate",
		},
		"from cert-manager, under another name": {
			certificateFrom("cert-manager", "mine"), []string{"Certificate", "Issuer"},
			[]string{"--webhook-certificate-source=cert-manager", dir}, "mine",
		},
		"supplied": {
			certificateFrom("secret", "mine"), nil, []string{"--webhook-certificate-source=secret", dir}, "mine",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := rendered(t, c.values)
			var kinds []string
			for _, object := range r.Objects {
				if slices.Contains([]string{"Certificate", "Issuer"}, object.GetKind()) || object.GetKind() == "Role" && strings.Contains(object.GetName(), "certificate") {
					kinds = append(kinds, object.GetKind())
				}
			}
			slices.Sort(kinds)
			if diff := cmp.Diff(c.kinds, kinds); diff != "" {
				t.Errorf("objects: %s", diff)
			}
			var deployment appsv1.Deployment
			r.find(t, "Deployment", "fairlead", &deployment)
			pod := deployment.Spec.Template.Spec
			for _, arg := range append(c.args, "--webhook-service=fairlead-system/fairlead-webhook:443", "--webhook-bind-address=:9443") {
				if !slices.Contains(pod.Containers[0].Args, arg) {
					t.Errorf("no %s in %v", arg, pod.Containers[0].Args)
				}
			}
			i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mounted })
			if (i >= 0) != (c.secret != "") || i >= 0 && pod.Volumes[i].Secret.SecretName != c.secret {
				t.Errorf("volumes are %+v", pod.Volumes)
			}
		})
	}
}

func TestChartAsksCertManager(t *testing.T) {
	var certificate unstructured.Unstructured
	for _, object := range rendered(t, certificateFrom("cert-manager", "")).Objects {
		if object.GetKind() == "Certificate" {
			certificate = *object
		}
	}
	want := map[string]any{
		"commonName": "fairlead-webhook",
		"dnsNames":   []any{"fairlead-webhook.fairlead-system.svc"},
		"secretName": "fairlead-webhook-certificate",
		"duration":   "2160h", "renewBefore": "720h",
		"usages":     []any{"digital signature", "server auth"},
		"privateKey": map[string]any{"algorithm": "Ed25519", "rotationPolicy": "Always"},
		"issuerRef":  map[string]any{"group": "cert-manager.io", "kind": "Issuer", "name": "fairlead-webhook"},
	}
	if diff := cmp.Diff(want, certificate.Object["spec"]); diff != "" {
		t.Error(diff)
	}
}

func TestChartServesWebhooks(t *testing.T) {
	r := rendered(t, nil)
	var service corev1.Service
	r.find(t, "Service", "-webhook", &service)
	var deployment appsv1.Deployment
	r.find(t, "Deployment", "fairlead", &deployment)
	port := service.Spec.Ports[0]
	if !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
		return p.Name == port.TargetPort.StrVal && p.ContainerPort == 9443
	}) || port.Port != 443 {
		t.Errorf("the Service leads to %+v", port)
	}
	if diff := cmp.Diff(deployment.Spec.Selector.MatchLabels, service.Spec.Selector); diff != "" {
		t.Errorf("the Service is for other pods: %s", diff)
	}
}

func TestChartWithoutWebhooks(t *testing.T) {
	r := rendered(t, map[string]any{"passages": []any{"revision"}})
	for _, object := range r.Objects {
		if strings.HasSuffix(object.GetName(), "-webhook") || object.GetKind() == "Certificate" {
			t.Errorf("%s %s is for a passage that does not run", object.GetKind(), object.GetName())
		}
	}
}

func TestChartKeepsOneSecret(t *testing.T) {
	var role rbacv1.Role
	rendered(t, certificateFrom("self-signed", "mine")).find(t, "Role", "-certificate", &role)
	for _, rule := range role.Rules {
		if !slices.Equal(rule.Verbs, []string{"create"}) && !slices.Equal(rule.ResourceNames, []string{"mine"}) {
			t.Errorf("%+v", rule)
		}
	}
}

func TestChartMemoryOfWebhooks(t *testing.T) {
	for memory, want := range map[string]bool{"": false, "256Mi": true} {
		var deployment appsv1.Deployment
		rendered(t, map[string]any{"webhook": map[string]any{"memory": memory}}).find(t, "Deployment", "fairlead", &deployment)
		if got := slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--webhook-memory="+memory); got != want {
			t.Errorf("%q: %t", memory, got)
		}
	}
}

// TestChartNetworkPolicy: nothing is admitted but to the ports that are served, and to those only from who is named.
func TestChartNetworkPolicy(t *testing.T) {
	api := map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.0/28"}}
	monitoring := map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "monitoring"}}}
	proxies := map[string]any{"mesh": map[string]any{"serving": map[string]any{"enabled": true, "certificateSecret": "c"}}}
	cases := map[string]struct {
		values map[string]any
		// of is the Deployment.
		of   string
		want map[string]int
	}{
		"everyone, to what is served": {nil, "fairlead", map[string]int{"probes": 0, "metrics": 0, "webhook": 0}},
		"those named": {
			map[string]any{"networkPolicy": map[string]any{"webhookFrom": []any{api, api}, "metricsFrom": []any{monitoring}}}, "fairlead",
			map[string]int{"probes": 0, "metrics": 1, "webhook": 2},
		},
		"without webhooks":           {map[string]any{"passages": []any{"revision"}}, "fairlead", map[string]int{"probes": 0, "metrics": 0}},
		"the operator, with proxies": {proxies, "fairlead", map[string]int{"probes": 0, "metrics": 0, "webhook": 0}},
		"those that serve proxies":   {proxies, "fairlead-mesh", map[string]int{"probes": 0, "metrics": 0, "mesh": 0}},
		"the proxies that are named": {
			map[string]any{"mesh": proxies["mesh"], "networkPolicy": map[string]any{"meshFrom": []any{monitoring, api}}}, "fairlead-mesh",
			map[string]int{"probes": 0, "metrics": 0, "mesh": 2},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := rendered(t, c.values)
			var policy networkingv1.NetworkPolicy
			var deployment appsv1.Deployment
			r.find(t, "NetworkPolicy", c.of, &policy)
			r.find(t, "Deployment", c.of, &deployment)
			if diff := cmp.Diff(*deployment.Spec.Selector, policy.Spec.PodSelector); diff != "" {
				t.Errorf("the policy is for other pods: %s", diff)
			}
			got := map[string]int{}
			for _, rule := range policy.Spec.Ingress {
				for _, port := range rule.Ports {
					got[port.Port.StrVal] = len(rule.From)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			var served []string
			for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
				served = append(served, port.Name)
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(got)), slices.Sorted(slices.Values(served))); diff != "" {
				t.Errorf("admitted and served: %s", diff)
			}
		})
	}
	if rendered(t, map[string]any{"networkPolicy": map[string]any{"enabled": false}}).has("NetworkPolicy") {
		t.Error("it cannot be switched off")
	}
}

package forecast

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func read[O client.Object](t *testing.T, into O, text string) O {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	return into
}

func TestServicesIn(t *testing.T) {
	namespace := read(t, &corev1.Namespace{}, `{metadata: {name: shop, labels: {kuma.io/sidecar-injection: enabled}}}`)
	cart := read(t, &corev1.Service{}, `{metadata: {name: cart, namespace: shop}, spec: {clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], selector: {app: cart}, ports: [{port: 80}]}}`)
	headless := read(t, &corev1.Service{}, `{metadata: {name: db, namespace: shop}, spec: {clusterIP: None, clusterIPs: [None], selector: {app: db}, ports: [{port: 80}]}}`)
	pod := read(t, &corev1.Pod{}, `{metadata: {name: db-0, namespace: shop, labels: {app: db}}, status: {podIP: 10.1.0.9}}`)
	dataplane := read(t, &kumav1alpha1.Dataplane{}, `{metadata: {name: db-0, namespace: shop}, spec: {networking: {address: 10.1.0.9}}}`)
	elsewhere := read(t, &corev1.Service{}, `{metadata: {name: cart, namespace: bank}, spec: {clusterIP: 10.0.0.8, selector: {app: cart}, ports: [{port: 80}]}}`)
	other := read(t, &corev1.Service{}, `{metadata: {name: tea, namespace: shop, labels: {kuma.io/mesh: other}}, spec: {clusterIP: 10.0.0.9, selector: {app: tea}, ports: [{port: 80}]}}`)
	mine := read(t, &kumav1alpha1.MeshService{}, `{metadata: {name: cart, namespace: shop}, status: {vips: [{ip: 10.9.9.9}]}}`)
	made := read(t, &kumav1alpha1.MeshService{}, `{metadata: {name: cart, namespace: shop, labels: {kuma.io/managed-by: fairlead}, annotations: {fairlead.dev/labels: ""},
		ownerReferences: [{apiVersion: v1, kind: Service, name: cart, uid: "1", controller: true}]}, status: {vips: [{ip: 10.0.0.7}], addresses: [{hostname: old}]}}`)
	takenOver := read(t, &kumav1alpha1.MeshService{}, `{metadata: {name: db-0-kuma, namespace: shop, labels: {kuma.io/managed-by: fairlead},
		ownerReferences: [{apiVersion: v1, kind: Service, name: db, uid: "1", controller: true}]}, spec: {selector: {dataplaneRef: {name: db-0}}}, status: {vips: [{ip: 10.1.0.9}]}}`)
	names := read(t, &kumav1alpha1.HostnameGenerator{}, `{metadata: {name: g, namespace: kuma-system}, spec: {template: "{{ .DisplayName }}.{{ .Namespace }}.mesh.local", selector: {meshService: {matchLabels: {}}}}}`)
	tenant := read(t, &kumav1alpha1.HostnameGenerator{}, `{metadata: {name: g, namespace: shop}, spec: {template: "{{ .DisplayName }}.stolen", selector: {meshService: {matchLabels: {}}}}}`)
	taken := read(t, &kumav1alpha1.MeshService{}, `{metadata: {name: west, namespace: kuma-system, labels: {kuma.io/zone: west}}, status: {addresses: [{hostname: cart.shop.mesh.local}]}}`)
	machine := read(t, &kumav1alpha1.Dataplane{}, `{metadata: {name: m, namespace: kuma-system}, spec: {networking: {address: 10.1.0.1, inbound: [{port: 80, tags: {kuma.io/service: tea}}]}}}`)
	unfit := read(t, &kumav1alpha1.Dataplane{}, `{metadata: {name: u, namespace: kuma-system}, spec: {networking: {address: 10.1.0.1, inbound: [{port: 80, tags: {kuma.io/service: tea_x}}]}}}`)

	cases := map[string]struct {
		environment string
		objects     []client.Object
		mode        model.Mode
		want        []string
	}{
		"of a Service":                        {"", []client.Object{namespace, cart, elsewhere, other}, model.Everywhere, []string{"shop/cart at [10.0.0.7] []"}},
		"with a hostname":                     {"", []client.Object{namespace, cart, names, tenant}, model.Everywhere, []string{"shop/cart at [10.0.0.7] [cart.shop.mesh.local]"}},
		"with a hostname that another has":    {"", []client.Object{namespace, cart, names, taken}, model.Exclusive, []string{"kuma-system/west at [] [cart.shop.mesh.local]", "shop/cart at [10.0.0.7] []"}},
		"of each pod of a headless Service":   {"", []client.Object{namespace, headless, pod, dataplane}, model.Everywhere, []string{"shop/db-0-632f8882 at [10.1.0.9] []"}},
		"somebody's own is left alone":        {"", []client.Object{namespace, cart, mine}, model.Everywhere, []string{"shop/cart at [10.9.9.9] []"}},
		"one that is there keeps its status":  {"", []client.Object{namespace, cart, made, names}, model.Everywhere, []string{"shop/cart at [10.0.0.7] [old]"}},
		"one whose Service is gone, goes":     {"", []client.Object{namespace, made}, model.Everywhere, nil},
		"Disabled removes what was generated": {"", []client.Object{namespace, cart, made, taken}, model.Disabled, []string{"kuma-system/west at [] [cart.shop.mesh.local]"}},
		"one of a pod that was taken over":    {"", []client.Object{namespace, headless, pod, dataplane, takenOver}, model.Everywhere, []string{"shop/db-0-kuma at [10.1.0.9] []"}},
		"one that was taken over stays":       {"", []client.Object{namespace, headless, takenOver}, model.Everywhere, []string{"shop/db-0-kuma at [10.1.0.9] []"}},
		"and in Disabled":                     {"", []client.Object{namespace, headless, takenOver}, model.Disabled, []string{"shop/db-0-kuma at [10.1.0.9] []"}},
		"but without its Service":             {"", []client.Object{namespace, takenOver}, model.Everywhere, nil},
		"of Dataplanes":                       {desired.Universal, []client.Object{machine, unfit}, model.Everywhere, []string{"kuma-system/tea at [241.197.109.248] []"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mesh := read(t, &kumav1alpha1.Mesh{}, `{metadata: {name: default}}`)
			w := NewMeshState(mesh, &corev1.ConfigMap{}, desired.ZoneInfo{Zone: "east", Environment: c.environment})
			for _, o := range c.objects {
				w.Add(o)
			}
			var got []string
			for _, s := range w.meshServicesIn(c.mode) {
				var vips, hosts []string
				for _, v := range s.Status.VIPs {
					vips = append(vips, v.IP)
				}
				for _, a := range s.Status.Addresses {
					hosts = append(hosts, a.Hostname)
				}
				got = append(got, fmt.Sprintf("%s/%s at %v %v", s.Namespace, s.Name, vips, hosts))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhereTheOperatorWorks(t *testing.T) {
	recorded := read(t, &corev1.ConfigMap{}, `{metadata: {annotations: {fairlead.dev/zone: east, fairlead.dev/environment: universal}}}`)
	cases := map[string]struct {
		tags  *corev1.ConfigMap
		where desired.ZoneInfo
		want  desired.ZoneInfo
		notes int
	}{
		"as recorded":             {recorded, desired.ZoneInfo{}, desired.ZoneInfo{Environment: "universal", Zone: "east", SystemNamespace: "kuma-system"}, 0},
		"as told":                 {recorded, desired.ZoneInfo{Environment: "kubernetes", Zone: "west", SystemNamespace: "mesh"}, desired.ZoneInfo{Environment: "kubernetes", Zone: "west", SystemNamespace: "mesh"}, 0},
		"nobody knows":            {&corev1.ConfigMap{}, desired.ZoneInfo{}, desired.ZoneInfo{Environment: "kubernetes", Zone: "default", SystemNamespace: "kuma-system"}, 1},
		"nobody else has to know": {&corev1.ConfigMap{}, desired.ZoneInfo{Zone: "west"}, desired.ZoneInfo{Environment: "kubernetes", Zone: "west", SystemNamespace: "kuma-system"}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := NewMeshState(&kumav1alpha1.Mesh{}, c.tags, c.where)
			if w.Where != c.want || len(w.notes) != c.notes {
				t.Errorf("it is %+v, %q", w.Where, w.notes)
			}
		})
	}
}

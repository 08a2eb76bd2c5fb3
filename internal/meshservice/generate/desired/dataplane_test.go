package desired

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

func TestDataplaneOf(t *testing.T) {
	pod := makePod("cart-0", "cart")
	pod.Annotations = map[string]string{
		kumav1alpha1.AnnotationReachableBackends: "refs:\n- kind: MeshService\n  labels: {}\n",
		kumav1alpha1.AnnotationReachableServices: "redis_shop_svc_6379, backend_shop_svc_80",
	}
	cart := makeService("cart", tcp("http", 80, intstr.FromString("web")), tcp("", 81, intstr.FromString("unknown")))
	other := makeService("another", tcp("", 9090, intstr.FromInt32(9090)))
	other.Spec.Selector = map[string]string{"version": "v1"}
	unlike := makeService("unlike", tcp("", 80, intstr.FromInt32(80)))
	got, err := DataplaneOf(pod, injected(), []*corev1.Service{cart, unlike, other}, "Deployment/cart", nil, onKubernetes)
	if err != nil {
		t.Fatal(err)
	}
	want := `metadata:
  annotations:
    fairlead.dev/consumer: Deployment/cart
  labels:
    app: cart
    k8s.kuma.io/namespace: shop
    kuma.io/display-name: cart-0
    kuma.io/managed-by: fairlead
    kuma.io/mesh: default
    kuma.io/namespace: shop
    kuma.io/origin: zone
    kuma.io/zone: east
    version: v1
  name: cart-0
  namespace: shop
  ownerReferences:
  - apiVersion: v1
    controller: true
    kind: Pod
    name: cart-0
    uid: uid-of-cart-0
spec:
  networking:
    address: 10.1.0.1
    inbound:
    - port: 9090
      protocol: tcp
      state: Ready
      tags:
        app: cart
        k8s.kuma.io/namespace: shop
        k8s.kuma.io/service-name: another
        k8s.kuma.io/service-port: "9090"
        kuma.io/protocol: tcp
        kuma.io/service: another_shop_svc_9090
        kuma.io/zone: east
        version: v1
    - name: web
      port: 8080
      protocol: http
      state: Ready
      tags:
        app: cart
        k8s.kuma.io/namespace: shop
        k8s.kuma.io/service-name: cart
        k8s.kuma.io/service-port: "80"
        kuma.io/protocol: http
        kuma.io/service: cart_shop_svc_80
        kuma.io/zone: east
        version: v1
    transparentProxying:
      reachableBackendRefs:
      - kind: MeshService
        labels: {}
      reachableServices:
      - redis_shop_svc_6379
      - backend_shop_svc_80
      redirectPortInbound: 15006
      redirectPortOutbound: 15001
`
	if diff := cmp.Diff(want, yamlOf(t, got)); diff != "" {
		t.Error(diff)
	}
	if !IsGeneratedDataplane(got) {
		t.Error("it is not told from what others made")
	}
}

// One that serves nothing calls all the same.
func TestDataplaneOfConsumer(t *testing.T) {
	got, err := DataplaneOf(makePod("batch-x7", "batch"), injected(), nil, "CronJob/batch", nil, onKubernetes)
	if err != nil {
		t.Fatal(err)
	}
	inbound := got.Spec.Networking.Inbound
	if len(inbound) != 1 || inbound[0].Tags[kumav1alpha1.TagService] != "batch_shop_svc" || inbound[0].State != kumav1alpha1.InboundIgnored {
		t.Errorf("its inbounds are %+v", inbound)
	}
}

func TestWhichPods(t *testing.T) {
	gone := &metav1.Time{Time: time.Unix(1, 0)}
	for name, c := range map[string]struct {
		how   func(*corev1.Pod, *metav1.ObjectMeta)
		state kumav1alpha1.InboundState // empty: it has none
	}{
		"ready":                   {func(*corev1.Pod, *metav1.ObjectMeta) {}, kumav1alpha1.InboundReady},
		"not ready":               {func(p *corev1.Pod, _ *metav1.ObjectMeta) { p.Status.Conditions = nil }, kumav1alpha1.InboundNotReady},
		"going":                   {func(p *corev1.Pod, _ *metav1.ObjectMeta) { p.DeletionTimestamp = gone }, kumav1alpha1.InboundNotReady},
		"without an address":      {func(p *corev1.Pod, _ *metav1.ObjectMeta) { p.Status.PodIP = "" }, ""},
		"with the node's address": {func(p *corev1.Pod, _ *metav1.ObjectMeta) { p.Spec.HostNetwork = true }, ""},
		"ended":                   {func(p *corev1.Pod, _ *metav1.ObjectMeta) { p.Status.Phase = corev1.PodSucceeded }, ""},
		"failed":                  {func(p *corev1.Pod, _ *metav1.ObjectMeta) { p.Status.Phase = corev1.PodFailed }, ""},
		"of another namespace":    {func(_ *corev1.Pod, n *metav1.ObjectMeta) { n.Labels = nil }, ""},
		"that asks for it elsewhere": {func(p *corev1.Pod, n *metav1.ObjectMeta) {
			n.Labels, p.Labels[kumav1alpha1.LabelSidecarInjection] = nil, "enabled"
		}, kumav1alpha1.InboundReady},
		"that asks for none": {func(p *corev1.Pod, _ *metav1.ObjectMeta) { p.Labels[kumav1alpha1.LabelSidecarInjection] = "disabled" }, ""},
		"ignored": {func(p *corev1.Pod, _ *metav1.ObjectMeta) {
			p.Annotations = map[string]string{kumav1alpha1.AnnotationIgnore: "true"}
		}, ""},
		"of an ignored namespace": {func(_ *corev1.Pod, n *metav1.ObjectMeta) {
			n.Annotations = map[string]string{kumav1alpha1.AnnotationIgnore: "true"}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod, namespace := makePod("cart-0", "cart"), injected()
			c.how(pod, namespace)
			service := makeService("cart", tcp("", 80, intstr.FromInt32(8080)))
			got, err := DataplaneOf(pod, namespace, []*corev1.Service{service}, "Pod/cart-0", nil, onKubernetes)
			switch {
			case err != nil:
				t.Fatal(err)
			case got == nil && c.state != "", got != nil && got.Spec.Networking.Inbound[0].State != c.state:
				t.Errorf("got %+v, want it %q", got, c.state)
			}
		})
	}
}

// A Service of another mesh gives a pod no inbound.
func TestInboundsOfOneMesh(t *testing.T) {
	service := makeService("cart", tcp("", 80, intstr.FromInt32(8080)))
	service.Labels[kumav1alpha1.LabelMesh] = "other"
	got, err := DataplaneOf(makePod("cart-0", "cart"), injected(), []*corev1.Service{service}, "Pod/cart-0", nil, onKubernetes)
	if err != nil || got.Spec.Networking.Inbound[0].State != kumav1alpha1.InboundIgnored {
		t.Errorf("got %+v, %v", got, err)
	}
}

// What cannot be read changes nothing of what a pod reaches.
func TestMalformedReach(t *testing.T) {
	pod := makePod("cart-0", "cart")
	pod.Annotations = map[string]string{kumav1alpha1.AnnotationReachableBackends: "refs: [{kind: MeshService, name: redis}]"}
	there, err := DataplaneOf(pod, injected(), nil, "Pod/cart-0", nil, onKubernetes)
	if err != nil {
		t.Fatal(err)
	}
	pod.Annotations[kumav1alpha1.AnnotationReachableBackends] = "refs: [{kind: MeshServices}]"
	now, err := DataplaneOf(pod, injected(), nil, "Pod/cart-0", there, onKubernetes)
	if err == nil || !strings.Contains(err.Error(), "kuma.io/reachable-backends: refs[0].kind") {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(yamlOf(t, there), yamlOf(t, now)); diff != "" {
		t.Error(diff)
	}
	pod.UID = "another"
	now, err = DataplaneOf(pod, injected(), nil, "Pod/cart-0", there, onKubernetes)
	if _, set := now.Spec.Networking.TransparentProxying.BackendRefs(); set || err == nil {
		t.Errorf("a new pod has what the old one had: %+v, %v", now, err)
	}
}

func TestReachableBackends(t *testing.T) {
	redis := kumav1alpha1.ReachableBackendRef{Kind: "MeshService", Name: "redis", Namespace: "shop", Port: ptr.To[int32](6379)}
	every := kumav1alpha1.ReachableBackendRef{Kind: "MeshService", Labels: map[string]string{}}
	for name, c := range map[string]struct {
		text string
		want []kumav1alpha1.ReachableBackendRef
		err  string
	}{
		"as Kuma writes it":      {"refs:\n- kind: MeshService\n  name: redis\n  namespace: shop\n  port: 6379\n", []kumav1alpha1.ReachableBackendRef{redis}, ""},
		"a list":                 {"[{kind: MeshService, name: redis, namespace: shop, port: 6379}]", []kumav1alpha1.ReachableBackendRef{redis}, ""},
		"one":                    {"{ kind: MeshService, labels: {} }", []kumav1alpha1.ReachableBackendRef{every}, ""},
		"JSON":                   {`{"refs":[{"kind":"MeshService","labels":{}}]}`, []kumav1alpha1.ReachableBackendRef{every}, ""},
		"none":                   {"refs: []", nil, ""},
		"an empty list":          {"[]", nil, ""},
		"an empty object":        {"{}", nil, ""},
		"nothing":                {"", nil, "write refs with a list of backends, or refs: [] for none"},
		"a word":                 {"redis", nil, "is not a list"},
		"no YAML":                {"refs: [", nil, "not YAML"},
		"a key twice":            {"refs: []\nrefs: []", nil, "not YAML"},
		"an unknown field":       {"ref: []", nil, `unknown field "ref"`},
		"an unknown field in it": {"refs: [{kind: MeshService, nam: redis}]", nil, `unknown field "nam"`},
		"no kind":                {"refs: [{name: redis}]", nil, `refs[0].kind ""`},
		"another kind":           {"refs: [{kind: Service, name: redis}]", nil, `refs[0].kind "Service" cannot be reached: write MeshService or MeshMultiZoneService`},
		"no name":                {"refs: [{kind: MeshService}]", nil, "refs[0].name is missing"},
		"name and labels":        {"refs: [{kind: MeshService, name: a, labels: {}}]", nil, "set one of them"},
		"namespace and labels":   {"refs: [{kind: MeshService, namespace: a, labels: {}}]", nil, "select the namespace by the label kuma.io/namespace"},
		"a strange port":         {"refs: [{kind: MeshService, name: a, port: 70000}]", nil, "refs[0].port 70000"},
		"a port that is text":    {"refs: [{kind: MeshService, name: a, port: http}]", nil, "port"},
		"a list of strings":      {"[redis]", nil, "a backend has kind"},
		"an alias":               {"refs: [{kind: &kind MeshService, name: a}, {kind: *kind, name: b}]", nil, "line 1 has an anchor or alias: write the value out"},
		"an anchor only":         {"refs:\n- kind: MeshService\n  name: &name a\n", nil, "line 3 has an anchor"},
		"a cycle":                {"refs: &refs [*refs]", nil, "anchor or alias"},
		"the longest":            {"refs: [] #" + strings.Repeat("x", maxBackendsText-len("refs: [] #")), nil, ""},
		"too long":               {"refs: [] #" + strings.Repeat("x", maxBackendsText), nil, "more than 16384: list fewer backends, or select them by labels"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReachableBackends(c.text)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), kumav1alpha1.AnnotationReachableBackends) {
					t.Errorf("the error is %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got)+len(c.want) > 0 {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// A short text of aliases does not become a long one in memory.
func TestReachableBackendsDoNotGrow(t *testing.T) {
	// The parser allows aliases among enough other values.
	text := "others: [" + strings.Repeat("0,", 1000) + "]\na0: &a0 " + strings.Repeat("x", 4000) + "\n"
	for i := range 4 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReachableBackends(text); err == nil {
		t.Error("aliases were taken")
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes of text took %d bytes of memory", len(text), grown)
	}
}

func FuzzReachableBackends(f *testing.F) {
	for _, text := range []string{"refs: [{kind: MeshService, labels: {}}]", "[]", "{}", "a: &a [*a]", "\t", "- kind: MeshService\n  name: a\n  port: 1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		refs, err := ReachableBackends(text)
		if err != nil {
			return
		}
		for i := range refs {
			if err := checkBackend(&refs[i]); err != nil {
				t.Errorf("%q gave %+v: %v", text, refs[i], err)
			}
		}
	})
}

func TestReachableServices(t *testing.T) {
	for text, want := range map[string][]string{
		"a, b,,c ": {"a", "b", "c"}, "*": {"*"}, "": {""}, " , ": {""},
	} {
		if diff := cmp.Diff(want, ReachableServices(text)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestConsumerOf(t *testing.T) {
	owner := func(apiVersion, kind, name string) *metav1.OwnerReference {
		return &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: ptr.To(true)}
	}
	for name, c := range map[string]struct {
		owner, ownersOwner *metav1.OwnerReference
		between            bool
		want               string
	}{
		"by itself":            {nil, nil, false, "Pod/p"},
		"of a Deployment":      {owner("apps/v1", "ReplicaSet", "cart-7d9"), owner("apps/v1", "Deployment", "cart"), true, "Deployment/cart"},
		"of a Rollout":         {owner("apps/v1", "ReplicaSet", "cart-7d9"), owner("argoproj.io/v1alpha1", "Rollout", "cart"), true, "Rollout/cart"},
		"of a ReplicaSet":      {owner("apps/v1", "ReplicaSet", "cart-7d9"), nil, true, "ReplicaSet/cart-7d9"},
		"of a CronJob":         {owner("batch/v1", "Job", "report-28"), owner("batch/v1", "CronJob", "report"), true, "CronJob/report"},
		"of a Job":             {owner("batch/v1", "Job", "report"), nil, true, "Job/report"},
		"of a StatefulSet":     {owner("apps/v1", "StatefulSet", "redis"), nil, false, "StatefulSet/redis"},
		"of something strange": {owner("example.org/v1", "Job", "x"), nil, false, "Job/x"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &metav1.ObjectMeta{Name: "p"}
			if c.owner != nil {
				pod.OwnerReferences = []metav1.OwnerReference{*c.owner}
			}
			if got := ConsumerOf(pod, c.ownersOwner); got != c.want || IsIntermediateOwner(c.owner) != c.between {
				t.Errorf("it is of %s, want %s", got, c.want)
			}
		})
	}
}

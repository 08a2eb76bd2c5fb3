package desired

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

func TestMeshServicesOf(t *testing.T) {
	service := makeService("cart", tcp("http-web", 80, intstr.FromString("web")), tcp("", 5000, intstr.IntOrString{}))
	got := MeshServicesOf(service, injected(), nil, nil, onKubernetes)
	if len(got) != 1 {
		t.Fatalf("got %d", len(got))
	}
	want := `metadata:
  labels:
    k8s.kuma.io/namespace: shop
    k8s.kuma.io/service-name: cart
    kuma.io/display-name: cart
    kuma.io/managed-by: fairlead
    kuma.io/mesh: default
    kuma.io/namespace: shop
    kuma.io/origin: zone
    kuma.io/zone: east
    team: a
  name: cart
  namespace: shop
  ownerReferences:
  - apiVersion: v1
    controller: true
    kind: Service
    name: cart
    uid: uid-of-cart
spec:
  ports:
  - appProtocol: http
    name: http-web
    port: 80
    targetPort: web
  - appProtocol: tcp
    name: "5000"
    port: 5000
    targetPort: 5000
  selector:
    dataplaneTags:
      k8s.kuma.io/namespace: shop
      k8s.kuma.io/service-name: cart
`
	if diff := cmp.Diff(want, yamlOf(t, got[0])); diff != "" {
		t.Error(diff)
	}
	if !IsGenerated(got[0], onKubernetes) {
		t.Error("it is not told from what others made")
	}
}

// Which Services are of a mesh, and of which.
func TestWhichServices(t *testing.T) {
	for name, c := range map[string]struct {
		how  func(*corev1.Service, *metav1.ObjectMeta)
		mesh string // empty: of none
	}{
		"of a namespace with proxies": {func(*corev1.Service, *metav1.ObjectMeta) {}, "default"},
		"of another namespace":        {func(_ *corev1.Service, n *metav1.ObjectMeta) { n.Labels = nil }, ""},
		"of another namespace, with a mesh": {func(s *corev1.Service, n *metav1.ObjectMeta) {
			n.Labels, n.Annotations = nil, map[string]string{kumav1alpha1.AnnotationAllowedMeshes: "payments"}
			s.Labels[kumav1alpha1.LabelMesh] = "payments"
		}, "payments"},
		"with a mesh of its own": {func(s *corev1.Service, n *metav1.ObjectMeta) {
			n.Annotations = map[string]string{kumav1alpha1.AnnotationAllowedMeshes: "x, payments"}
			n.Labels[kumav1alpha1.LabelMesh], s.Labels[kumav1alpha1.LabelMesh] = "other", "payments"
		}, "payments"},
		"with any mesh": {func(s *corev1.Service, n *metav1.ObjectMeta) {
			n.Annotations = map[string]string{kumav1alpha1.AnnotationAllowedMeshes: "*"}
			s.Labels[kumav1alpha1.LabelMesh] = "payments"
		}, "payments"},
		"with a mesh that its namespace may not use": {func(s *corev1.Service, n *metav1.ObjectMeta) {
			s.Labels[kumav1alpha1.LabelMesh] = "payments"
		}, ""},
		"with the default mesh instead of that of its namespace": {func(s *corev1.Service, n *metav1.ObjectMeta) {
			n.Labels[kumav1alpha1.LabelMesh], s.Labels[kumav1alpha1.LabelMesh] = "other", "default"
		}, ""},
		"with the mesh of its namespace": {func(_ *corev1.Service, n *metav1.ObjectMeta) { n.Labels[kumav1alpha1.LabelMesh] = "other" }, "other"},
		"ignored": {func(s *corev1.Service, _ *metav1.ObjectMeta) {
			s.Annotations = map[string]string{kumav1alpha1.AnnotationIgnore: "true"}
		}, ""},
		"of an ignored namespace": {func(_ *corev1.Service, n *metav1.ObjectMeta) {
			n.Annotations = map[string]string{kumav1alpha1.AnnotationIgnore: "true"}
		}, ""},
		"with a mesh, of an ignored namespace": {func(s *corev1.Service, n *metav1.ObjectMeta) {
			s.Labels[kumav1alpha1.LabelMesh] = "payments"
			n.Annotations = map[string]string{kumav1alpha1.AnnotationIgnore: "true"}
		}, ""},
		"of another place":      {func(s *corev1.Service, _ *metav1.ObjectMeta) { s.Spec.Type = corev1.ServiceTypeExternalName }, ""},
		"without a selector":    {func(s *corev1.Service, _ *metav1.ObjectMeta) { s.Spec.Selector = nil }, ""},
		"for datagrams":         {func(s *corev1.Service, _ *metav1.ObjectMeta) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP }, ""},
		"headless without pods": {func(s *corev1.Service, _ *metav1.ObjectMeta) { s.Spec.ClusterIP = corev1.ClusterIPNone }, ""},
		"going": {func(s *corev1.Service, _ *metav1.ObjectMeta) {
			s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			service, namespace := makeService("cart", tcp("", 80, intstr.FromInt32(8080))), injected()
			c.how(service, namespace)
			got := ""
			for _, one := range MeshServicesOf(service, namespace, nil, nil, onKubernetes) {
				got = MeshOf(one)
			}
			if got != c.mesh {
				t.Errorf("it is of mesh %q, want %q", got, c.mesh)
			}
		})
	}
}

func TestHeadless(t *testing.T) {
	service := makeService("redis", tcp("", 6379, intstr.FromInt32(6379)))
	service.Spec.ClusterIP = corev1.ClusterIPNone
	without, elsewhere := makePod("redis-2", "redis"), makePod("redis-3", "redis")
	without.Status.PodIP = ""
	elsewhere.Labels[kumav1alpha1.LabelMesh] = "other"
	got := MeshServicesOf(service, injected(), []*corev1.Pod{makePod("redis-0", "redis"), makePod("redis-1", "redis"), without, elsewhere}, nil, onKubernetes)
	var names []string
	for _, one := range got {
		names = append(names, one.Name+" "+one.Spec.Selector.DataplaneRef.Name+" of "+HeadlessService(one, onKubernetes))
	}
	if diff := cmp.Diff([]string{"redis-0-e8af5216 redis-0 of redis", "redis-1-087b42a3 redis-1 of redis"}, names); diff != "" {
		t.Error(diff)
	}
	existing := func(name string, change func(*kumav1alpha1.MeshService)) *kumav1alpha1.MeshService {
		one := got[0].DeepCopy()
		one.Name = name
		change(one)
		return one
	}
	for name, c := range map[string]struct {
		change func(*kumav1alpha1.MeshService)
		want   string
	}{
		"taken over":                        {func(*kumav1alpha1.MeshService) {}, "redis-0-kuma"},
		"of another pod":                    {func(m *kumav1alpha1.MeshService) { m.Spec.Selector.DataplaneRef.Name = "redis-1" }, "redis-0-e8af5216"},
		"of another Service":                {func(m *kumav1alpha1.MeshService) { m.OwnerReferences[0].Name = "other" }, "redis-0-e8af5216"},
		"of another namespace":              {func(m *kumav1alpha1.MeshService) { m.Namespace = "bank" }, "redis-0-e8af5216"},
		"that is not taken over":            {func(m *kumav1alpha1.MeshService) { m.Labels = nil }, "redis-0-e8af5216"},
		"that is being deleted":             {func(m *kumav1alpha1.MeshService) { m.DeletionTimestamp = &metav1.Time{} }, "redis-0-e8af5216"},
		"whose name cannot be a label":      {func(m *kumav1alpha1.MeshService) { m.Name = strings.Repeat("a", 64) }, "redis-0-e8af5216"},
		"beside one of the name it has now": {func(m *kumav1alpha1.MeshService) { m.Name = "redis-0-e8af5216" }, "redis-0-e8af5216"},
	} {
		there := []*kumav1alpha1.MeshService{existing("redis-0-kuma", c.change)}
		if kept := MeshServicesOf(service, injected(), []*corev1.Pod{makePod("redis-0", "redis")}, there, onKubernetes)[0].Name; kept != c.want {
			t.Errorf("beside one %s: %s, want %s", name, kept, c.want)
		}
	}
	theirs := got[0].DeepCopy()
	theirs.OwnerReferences = nil
	whole := MeshServicesOf(makeService("cart", tcp("", 80, intstr.FromInt32(80))), injected(), nil, nil, onKubernetes)[0]
	for _, other := range []*kumav1alpha1.MeshService{theirs, whole} {
		if of := HeadlessService(other, onKubernetes); of != "" {
			t.Errorf("%s is taken for a pod of %s", other.Name, of)
		}
	}
}

// Names are valid and never the same for two.
func TestPodServiceName(t *testing.T) {
	long := strings.Repeat("a", 63)
	seen := map[string]string{}
	for _, c := range [][2]string{
		{"a", "b-c"}, {"a-b", "c"}, {"a", "a-b-0"}, {"a-b", "a-b-0"}, {long, "pod"}, {long, strings.Repeat("b", 253)}, {"a", "pod.with.dots"},
		{"a", strings.Repeat("b", 51) + "-" + strings.Repeat("c", 20)},
	} {
		name := podServiceName(c[0], c[1])
		if problems := validation.IsDNS1035Label(name); problems != nil {
			t.Errorf("%v: %s is no name: %v", c, name, problems)
		}
		if other, found := seen[name]; found {
			t.Errorf("%v and %s are both %s", c, other, name)
		}
		seen[name] = strings.Join(c[:], " ")
	}
}

func TestProtocolOf(t *testing.T) {
	for name, c := range map[string]struct {
		port       corev1.ServicePort
		annotation string
		want       string
	}{
		"nothing":            {corev1.ServicePort{Port: 80}, "", "tcp"},
		"appProtocol":        {corev1.ServicePort{Port: 80, AppProtocol: ptr.To("grpc")}, "", "grpc"},
		"appProtocol counts": {corev1.ServicePort{Port: 80, Name: "http-x", AppProtocol: ptr.To("grpc")}, "http", "grpc"},
		"of Kubernetes":      {corev1.ServicePort{Port: 80, AppProtocol: ptr.To("kubernetes.io/h2c")}, "", "http2"},
		"encrypted":          {corev1.ServicePort{Port: 443, AppProtocol: ptr.To("https")}, "", "tcp"},
		"name":               {corev1.ServicePort{Port: 80, Name: "http"}, "", "http"},
		"prefix of the name": {corev1.ServicePort{Port: 80, Name: "grpc-api"}, "", "grpc"},
		"no prefix":          {corev1.ServicePort{Port: 80, Name: "httpd"}, "", "tcp"},
		"Kuma's annotation":  {corev1.ServicePort{Port: 80, Name: "web"}, "http", "http"},
		"a strange one":      {corev1.ServicePort{Port: 80}, "carrier pigeon", "tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			service := makeService("cart", c.port)
			if c.annotation != "" {
				service.Annotations = map[string]string{"80.service.kuma.io/protocol": c.annotation}
			}
			if got := protocolOf(service, c.port); got != c.want {
				t.Errorf("it speaks %s, want %s", got, c.want)
			}
		})
	}
}

func TestGenerated(t *testing.T) {
	mine := func() *kumav1alpha1.MeshService {
		return MeshServicesOf(makeService("cart", tcp("", 80, intstr.FromInt32(80))), injected(), nil, nil, onKubernetes)[0]
	}
	for name, how := range map[string]func(*kumav1alpha1.MeshService){
		"without the label":     func(m *kumav1alpha1.MeshService) { delete(m.Labels, kumav1alpha1.LabelManagedBy) },
		"managed by another":    func(m *kumav1alpha1.MeshService) { m.Labels[kumav1alpha1.LabelManagedBy] = "somebody" },
		"without an owner":      func(m *kumav1alpha1.MeshService) { m.OwnerReferences = nil },
		"owned by another kind": func(m *kumav1alpha1.MeshService) { m.OwnerReferences[0].Kind = "Deployment" },
		"synced": func(m *kumav1alpha1.MeshService) {
			m.Namespace, m.Labels[kumav1alpha1.LabelZone] = "kuma-system", "west"
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := mine()
			how(m)
			if IsGenerated(m, onKubernetes) {
				t.Error("it would be changed and removed")
			}
		})
	}
}

// Labels of others stay, ours go when they are not wanted any more.
func TestAdorn(t *testing.T) {
	before := &metav1.ObjectMeta{Labels: map[string]string{"a": "1", "b": "2"}}
	RecordLabels(before)
	before.Labels["theirs"] = "3"
	before.Annotations["note"] = "x"
	want := &metav1.ObjectMeta{Labels: map[string]string{"a": "4"}}
	RecordLabels(want)
	now := before
	MergeMetadata(now, want)
	if diff := cmp.Diff(map[string]string{"a": "4", "theirs": "3"}, now.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "x", annotationLabels: "a"}, now.Annotations); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(now.OwnerReferences, want.OwnerReferences) {
		t.Error(now.OwnerReferences)
	}
}

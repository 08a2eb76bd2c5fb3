package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// shards are the recorded VIPs of the mesh, and how many values are recorded as not served.
func (w *world) shards(ctx context.Context) (vips map[string]string, gone, shards int, err error) {
	vips = map[string]string{}
	for ; ; shards++ {
		var record corev1.ConfigMap
		key := client.ObjectKey{Namespace: w.options.SystemNamespace, Name: desired.VIPShard(w.mesh, shards)}
		if err := w.Get(ctx, key, &record); err != nil {
			return vips, gone, shards, client.IgnoreNotFound(err)
		}
		for service, vip := range record.Data {
			vips[service] = vip
		}
		since := map[string]time.Time{}
		if text := record.Annotations["fairlead.dev/gone-since"]; text != "" {
			if err := json.Unmarshal([]byte(text), &since); err != nil {
				return nil, 0, 0, err
			}
		}
		gone += len(since)
	}
}

// offer has a ZoneIngress of another zone offer these services.
func (w *world) offer(t *testing.T, services ...string) {
	t.Helper()
	ingress := &kumav1alpha1.ZoneIngress{ObjectMeta: metav1.ObjectMeta{Namespace: w.options.SystemNamespace, Name: "west"}}
	wait.Until(t, func(ctx context.Context) error {
		err := w.Get(ctx, client.ObjectKeyFromObject(ingress), ingress)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		ingress.Spec = kumav1alpha1.ZoneIngressSpec{Zone: "west"}
		for _, service := range services {
			ingress.Spec.AvailableServices = append(ingress.Spec.AvailableServices, kumav1alpha1.AvailableService{
				Mesh: w.mesh, Tags: map[string]string{kumav1alpha1.TagService: service},
			})
		}
		if err != nil {
			return w.Create(ctx, ingress)
		}
		return w.Update(ctx, ingress)
	})
}

// More values than the annotations of one object can hold go away at once: they are recorded in several ConfigMaps, and new values
// get addresses.
func TestManyTagsGone(t *testing.T) {
	w := begin(t, desired.Kubernetes, "")
	t.Cleanup(func() {
		ingress := &kumav1alpha1.ZoneIngress{ObjectMeta: metav1.ObjectMeta{Namespace: w.options.SystemNamespace, Name: "west"}}
		_ = w.Delete(context.Background(), ingress)
	})
	const many = 1500
	var services []string
	for i := range many {
		services = append(services, fmt.Sprintf("%s-%d", strings.Repeat("v", 200), i))
	}
	w.offer(t, services...)
	var first map[string]string
	wait.Until(t, func(ctx context.Context) error {
		vips, gone, shards, err := w.shards(ctx)
		if err != nil || len(vips) != many || gone != 0 || shards < 2 {
			return fmt.Errorf("%d values in %d ConfigMaps, %d gone: %v", len(vips), shards, gone, err)
		}
		first = vips
		return nil
	})
	w.offer(t, "late")
	wait.Until(t, func(ctx context.Context) error {
		vips, gone, _, err := w.shards(ctx)
		if err != nil || vips["late"] == "" || gone != many {
			return fmt.Errorf("%d values, %d gone, late has %q: %v", len(vips), gone, vips["late"], err)
		}
		for service, vip := range first {
			if vips[service] != vip {
				return fmt.Errorf("%.20s had %s and has %s", service, vip, vips[service])
			}
		}
		return nil
	})
}

// A namespace has its share of the addresses, and no more: others get theirs from the same range.
func TestNamespaceShare(t *testing.T) {
	w := begin(t, desired.Kubernetes, "", func(o *generate.Options) {
		o.Ranges = desired.Ranges{Tags: netip.MustParsePrefix("240.0.0.0/28"), Services: netip.MustParsePrefix("241.0.0.0/28")}
		o.NamespaceVIPs = 2
	})
	tenant := func(name string) (*kumav1alpha1.Dataplane, *kumav1alpha1.MeshService) {
		named := metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{kumav1alpha1.LabelMesh: w.mesh}}
		dataplane, service := &kumav1alpha1.Dataplane{ObjectMeta: named}, &kumav1alpha1.MeshService{ObjectMeta: *named.DeepCopy()}
		dataplane.Spec.Networking.Address = "10.0.0.1"
		dataplane.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: map[string]string{kumav1alpha1.TagService: name + "_" + w.namespace + "_svc_80"}}}
		service.Spec.Ports = []kumav1alpha1.Port{{Port: 80}}
		return dataplane, service
	}
	for _, name := range []string{"a", "b", "c"} {
		dataplane, service := tenant(name)
		w.create(t, dataplane, service)
		if name == "c" {
			break
		}
		w.service(t, w.namespace, name, vip)
		wait.Until(t, func(ctx context.Context) error {
			if vips, _, _, err := w.shards(ctx); err != nil || vips[name+"_"+w.namespace+"_svc_80"] == "" {
				return fmt.Errorf("the addresses are %v: %v", vips, err)
			}
			return nil
		})
	}
	w.meshSays(t, kumav1alpha1.ModeDisabled, kumav1alpha1.ConditionVIPs, kumav1alpha1.ReasonShareExhausted,
		"c_"+w.namespace+"_svc_80", "--mesh-namespace-vips", "mesh.namespaceVIPs")
	w.service(t, w.namespace, "c", func(s *kumav1alpha1.MeshService) error {
		return harness.CheckCondition(s.Status.Conditions, kumav1alpha1.ConditionVIPs, "", kumav1alpha1.ReasonShareExhausted, "--mesh-namespace-vips")
	})
	owners := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.options.SystemNamespace, Name: "west", Labels: map[string]string{kumav1alpha1.LabelMesh: w.mesh, kumav1alpha1.LabelZone: "west"},
	}}
	owners.Spec.Ports = []kumav1alpha1.Port{{Port: 80}}
	w.create(t, owners)
	w.service(t, w.options.SystemNamespace, "west", vip)
	_, first := tenant("a")
	if err := w.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.service(t, w.namespace, "c", vip)
}

// Names that a tenant writes, at any length, do not keep the status of the Mesh from being written.
func TestLongNames(t *testing.T) {
	w := begin(t, desired.Kubernetes, "")
	for i := range 3 {
		d := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprint("long-", i), Labels: map[string]string{kumav1alpha1.LabelMesh: w.mesh}}}
		d.Spec.Networking.Address = "10.0.0.1"
		d.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: map[string]string{
			kumav1alpha1.TagService: strings.Repeat("l", 20_000) + fmt.Sprintf("%d_%s_svc_80", i, w.namespace),
		}}}
		w.create(t, d)
	}
	w.meshSays(t, kumav1alpha1.ModeDisabled, kumav1alpha1.ConditionVIPs, generate.ReasonInvalidValue, "3 values")
}

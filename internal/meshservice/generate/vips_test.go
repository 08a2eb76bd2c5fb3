package generate

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// namespaceReader has Namespaces with these annotations.
type namespaceReader struct {
	client.Reader
	annotations map[string]string
}

func (r namespaceReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetName(key.Name)
	into.SetAnnotations(r.annotations)
	return nil
}

// TestTagsOfTenants: what a tenant claims of others is given no address.
func TestTagsOfTenants(t *testing.T) {
	theirs := map[string]string{kumav1alpha1.TagService: "backend_shop_svc_80"}
	ours := map[string]string{kumav1alpha1.TagService: "till_bank_svc_80"}
	all := []reconcile.Request{serviceRequest("default", "backend_shop_svc_80"), serviceRequest("default", "till_bank_svc_80")}
	for name, c := range map[string]struct {
		environment, namespace string
		served, behind         []reconcile.Request
	}{
		"a tenant":     {desired.Kubernetes, "bank", all[1:], nil},
		"the owner":    {desired.Kubernetes, "kuma-system", all, all},
		"in universal": {desired.Universal, "bank", all, all},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{cache: namespaceReader{}, Options: Options{ZoneInfo: desired.ZoneInfo{Environment: c.environment, SystemNamespace: "kuma-system"}}}
			named := metav1.ObjectMeta{Namespace: c.namespace, Name: "one"}
			dataplane, ingress := &kumav1alpha1.Dataplane{ObjectMeta: named}, &kumav1alpha1.ZoneIngress{ObjectMeta: named}
			dataplane.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: theirs}, {Port: 81, Tags: ours}}
			ingress.Spec.AvailableServices = []kumav1alpha1.AvailableService{{Tags: theirs}, {Tags: ours}}
			if diff := cmp.Diff(c.served, r.servicesOfDataplane(t.Context(), dataplane)); diff != "" {
				t.Errorf("by a Dataplane: %s", diff)
			}
			if diff := cmp.Diff(c.behind, r.ingressTags(t.Context(), ingress)); diff != "" {
				t.Errorf("behind a ZoneIngress: %s", diff)
			}
		})
	}
}

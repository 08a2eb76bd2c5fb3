package generate

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// builderIndexer adds the indexes of the controllers to a fake client.
type builderIndexer struct{ *fake.ClientBuilder }

func (b builderIndexer) IndexField(_ context.Context, object client.Object, field string, of client.IndexerFunc) error {
	b.WithIndex(object, field, of)
	return nil
}

func reconcilerWith(t *testing.T, objects ...client.Object) *reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := kumav1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &reconciler{
		Options: Options{ZoneInfo: desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}},
		now:     time.Now, events: &kube.EventDedup[eventSubject]{}, stalls: stallDetector{}, deleted: newDeletedMeshes(), owners: lru.New(maxOwners),
		recorder: events.NewFakeRecorder(100),
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := r.setupIndexes(t.Context(), builderIndexer{b}); err != nil {
		t.Fatal(err)
	}
	c := b.Build()
	r.client, r.cache, r.live, r.records = c, c, c, c
	return r
}

// takenOver is an object that another control plane has generated, and that the operator has taken over.
func takenOver(name, ownerKind, owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: ownerKind, Name: owner, UID: "1", Controller: ptr.To(true)}},
	}
}

func shop(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "1", Labels: labels},
		Status:     corev1.PodStatus{PodIP: "10.0.0.1", Phase: corev1.PodRunning},
	}
}

// TestTakenOverStays: what Fairlead has not written itself, it never deletes.
func TestTakenOverStays(t *testing.T) {
	const injected, without = "enabled", "disabled"
	redis := map[string]string{"app": "redis"}
	service := func(name, ip string, labels map[string]string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "1", Labels: labels},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	ofService := func(name, service, pod string) *kumav1alpha1.MeshService {
		m := &kumav1alpha1.MeshService{ObjectMeta: takenOver(name, "Service", service)}
		if pod != "" {
			m.Spec.Selector.DataplaneRef = &kumav1alpha1.DataplaneRef{Name: pod}
		}
		return m
	}
	ofPod := func(name string) *kumav1alpha1.Dataplane {
		return &kumav1alpha1.Dataplane{ObjectMeta: takenOver(name, "Pod", name)}
	}
	applied := func(m *kumav1alpha1.MeshService) *kumav1alpha1.MeshService {
		desired.RecordLabels(m)
		return m
	}
	refused := map[string]string{kumav1alpha1.LabelMesh: "payments", "app": "redis"}
	for name, c := range map[string]struct {
		injection string
		objects   []client.Object
		want      []string
	}{
		"of the pods of a headless Service, under the names that they have": {
			injected, []client.Object{service("redis", "None", nil), shop("redis-0", redis), ofService("redis-0-kuma", "redis", "redis-0")},
			[]string{"Dataplane redis-0", "MeshService redis-0-kuma"},
		},
		"and what was generated before they were taken over, goes": {
			injected, []client.Object{
				service("redis", "None", nil), shop("redis-0", redis), ofService("redis-0-kuma", "redis", "redis-0"), applied(ofService("redis-0-e8af5216", "redis", "redis-0")),
			},
			[]string{"Dataplane redis-0", "MeshService redis-0-kuma"},
		},
		"of a pod that is gone": {
			injected, []client.Object{service("redis", "None", nil), ofService("redis-0-kuma", "redis", "redis-0")},
			[]string{"MeshService redis-0-kuma"},
		},
		"that name a mesh that they may not": {
			injected, []client.Object{service("redis", "10.0.0.7", refused), shop("redis-0", refused), ofService("redis", "redis", ""), ofPod("redis-0")},
			[]string{"Dataplane redis-0", "MeshService redis"},
		},
		"where the namespace has lost its label": {
			without, []client.Object{service("redis", "10.0.0.7", nil), shop("redis-0", redis), ofService("redis", "redis", ""), ofPod("redis-0")},
			[]string{"Dataplane redis-0", "MeshService redis"},
		},
		"and what Fairlead has written, goes": {
			without, []client.Object{service("redis", "10.0.0.7", nil), applied(ofService("redis", "redis", ""))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: "shop", Labels: map[string]string{kumav1alpha1.LabelSidecarInjection: c.injection},
			}}
			mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
			mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: kumav1alpha1.ModeEverywhere}
			r := reconcilerWith(t, append([]client.Object{namespace, mesh}, c.objects...)...)
			for _, name := range []string{"redis", "redis-0"} {
				request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: name}}
				if _, err := r.reconcileService(t.Context(), request); err != nil {
					t.Fatal(err)
				}
				if _, err := r.reconcilePod(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			services, dataplanes := &kumav1alpha1.MeshServiceList{}, &kumav1alpha1.DataplaneList{}
			for _, list := range []client.ObjectList{services, dataplanes} {
				if err := r.client.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range dataplanes.Items {
				got = append(got, "Dataplane "+d.Name)
			}
			for _, s := range services.Items {
				got = append(got, "MeshService "+s.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

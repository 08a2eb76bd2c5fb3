package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: app, Image: app, Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
		}}},
	}
}

func (w *world) deployment(app string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: template(app),
		},
	}
}

func (w *world) kubeService(app string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: app},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}},
		},
	}
}

// dataplanes waits for the Dataplanes of an app, all of which are as they should be.
func (w *world) dataplanes(t testing.TB, app string, n int, is func(*kumav1alpha1.Dataplane) error) []kumav1alpha1.Dataplane {
	t.Helper()
	var list kumav1alpha1.DataplaneList
	wait.Until(t, func(ctx context.Context) error {
		if err := w.List(ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		if len(list.Items) != n {
			return fmt.Errorf("there are %d Dataplanes of %s, want %d", len(list.Items), app, n)
		}
		var errs []error
		for i := range list.Items {
			errs = append(errs, is(&list.Items[i]))
		}
		return errors.Join(errs...)
	})
	return list.Items
}

func ready(service string) func(*kumav1alpha1.Dataplane) error {
	return func(d *kumav1alpha1.Dataplane) error {
		inbound := d.Spec.Networking.Inbound
		if len(inbound) != 1 || inbound[0].Tags[kumav1alpha1.TagService] != service || inbound[0].State != kumav1alpha1.InboundReady {
			return fmt.Errorf("its inbounds are %+v", inbound)
		}
		return nil
	}
}

// An upgrade changes nothing; then the modes make and take what they should, and nothing else.
func TestModes(t *testing.T) {
	w := begin(t, desired.Kubernetes, "")
	byHand := &kumav1alpha1.MeshService{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "byhand", Labels: map[string]string{kumav1alpha1.LabelMesh: w.mesh}},
		Spec:       kumav1alpha1.MeshServiceSpec{Ports: []kumav1alpha1.Port{{Port: 80}}},
	}
	w.create(t, w.deployment("cart", 2), w.kubeService("cart"), byHand)
	got := w.dataplanes(t, "cart", 2, ready("cart_"+w.namespace+"_svc_80"))
	if consumer := got[0].Annotations[kumav1alpha1.AnnotationConsumer]; consumer != "Deployment/cart" {
		t.Errorf("it is of %q", consumer)
	}
	w.meshSays(t, kumav1alpha1.ModeDisabled, kumav1alpha1.ConditionGenerated, kumav1alpha1.ReasonDisabled)
	w.become(t, w.namespace, "byhand")

	w.turn(t, kumav1alpha1.ModeEverywhere)
	w.become(t, w.namespace, "byhand", "cart")
	var service corev1.Service
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "cart"}, &service); err != nil {
		t.Fatal(err)
	}
	cart := w.service(t, w.namespace, "cart", func(s *kumav1alpha1.MeshService) error {
		if want := (kumav1alpha1.DataplaneProxies{Total: 2, Healthy: 2}); s.Status.DataplaneProxies != want {
			return fmt.Errorf("its proxies are %+v", s.Status.DataplaneProxies)
		}
		if len(s.Status.VIPs) != 1 || s.Status.VIPs[0].IP != service.Spec.ClusterIP {
			return fmt.Errorf("its addresses are %+v", s.Status.VIPs)
		}
		return nil
	})
	if !metav1.IsControlledBy(cart, &service) {
		t.Errorf("it is owned by %+v", cart.OwnerReferences)
	}
	w.meshSays(t, kumav1alpha1.ModeEverywhere, kumav1alpha1.ConditionGenerated, kumav1alpha1.ReasonGenerated)

	w.turn(t, kumav1alpha1.ModeDisabled)
	w.become(t, w.namespace, "byhand")
	w.meshSays(t, kumav1alpha1.ModeDisabled, kumav1alpha1.ConditionGenerated, kumav1alpha1.ReasonDisabled)
	w.dataplanes(t, "cart", 2, ready("cart_"+w.namespace+"_svc_80"))

	// Nobody has to wait for what is in force.
	w.turn(t, kumav1alpha1.ModeExclusive)
	w.meshSays(t, kumav1alpha1.ModeExclusive, kumav1alpha1.ConditionGenerated, kumav1alpha1.ReasonGenerated)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(cart), cart); err != nil || len(cart.Status.VIPs) == 0 {
		t.Errorf("tags go before it is there (%v): %+v", err, cart.Status)
	}
}

// A MeshService that Fairlead does not manage is never overwritten; an event on its Service reports it.
func TestForeignMeshService(t *testing.T) {
	w := prepare(t, desired.Kubernetes, kumav1alpha1.ModeEverywhere)
	theirs := &kumav1alpha1.MeshService{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cart", Labels: map[string]string{kumav1alpha1.LabelMesh: w.mesh}},
		Spec:       kumav1alpha1.MeshServiceSpec{Ports: []kumav1alpha1.Port{{Port: 1234}}},
	}
	w.create(t, w.kubeService("cart"), theirs)
	w.start(t)
	if note := w.reported(t, w.namespace, "Service", "cart", kumav1alpha1.ReasonUnmanaged); !strings.Contains(note, "delete the MeshService") {
		t.Errorf("it was told %q", note)
	}
	w.meshSays(t, kumav1alpha1.ModeEverywhere, kumav1alpha1.ConditionGenerated, kumav1alpha1.ReasonUnmanaged)
	w.service(t, w.namespace, "cart", func(s *kumav1alpha1.MeshService) error {
		if s.Generation != 1 || s.Spec.Ports[0].Port != 1234 || desired.IsManaged(s) {
			return fmt.Errorf("it became %+v", s)
		}
		return nil
	})
	if err := w.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	w.service(t, w.namespace, "cart", func(s *kumav1alpha1.MeshService) error {
		if !desired.IsManaged(s) || s.Spec.Ports[0].Port != 80 {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	w.meshSays(t, kumav1alpha1.ModeEverywhere, kumav1alpha1.ConditionGenerated, kumav1alpha1.ReasonGenerated)
}

// A headless Service has a MeshService for each pod, with the address of that.
func TestHeadless(t *testing.T) {
	w := begin(t, desired.Kubernetes, kumav1alpha1.ModeEverywhere)
	service := w.kubeService("redis")
	service.Spec.ClusterIP = corev1.ClusterIPNone
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "redis"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](2), ServiceName: "redis", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}, Template: template("redis"),
		},
	}
	w.create(t, service, set)
	w.become(t, w.namespace, "redis-0-e8af5216", "redis-1-087b42a3")
	w.service(t, w.namespace, "redis-0-e8af5216", func(s *kumav1alpha1.MeshService) error {
		var pod corev1.Pod
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "redis-0"}, &pod); err != nil {
			return err
		}
		if len(s.Status.VIPs) != 1 || s.Status.VIPs[0].IP != pod.Status.PodIP || s.Status.DataplaneProxies.Total != 1 {
			return fmt.Errorf("its status is %+v, want the address %s", s.Status, pod.Status.PodIP)
		}
		return nil
	})
	w.edit(t, set, func(o client.Object) { o.(*appsv1.StatefulSet).Spec.Replicas = ptr.To[int32](1) })
	w.become(t, w.namespace, "redis-0-e8af5216")
}

// What people change is followed: the namespace, the Service, the pods.
func TestChanges(t *testing.T) {
	w := begin(t, desired.Kubernetes, kumav1alpha1.ModeExclusive)
	service := w.kubeService("cart")
	w.create(t, w.deployment("cart", 1), service)
	w.become(t, w.namespace, "cart")
	name := w.dataplanes(t, "cart", 1, ready("cart_"+w.namespace+"_svc_80"))[0].Name

	w.edit(t, service, func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].Port = 81 })
	w.dataplanes(t, "cart", 1, ready("cart_"+w.namespace+"_svc_81"))
	w.service(t, w.namespace, "cart", func(s *kumav1alpha1.MeshService) error {
		if s.Spec.Ports[0].Port != 81 {
			return fmt.Errorf("its ports are %+v", s.Spec.Ports)
		}
		return nil
	})
	w.edit(t, service, func(o client.Object) { o.SetAnnotations(map[string]string{kumav1alpha1.AnnotationIgnore: "true"}) })
	w.become(t, w.namespace)
	w.dataplanes(t, "cart", 1, func(d *kumav1alpha1.Dataplane) error {
		if inbound := d.Spec.Networking.Inbound; inbound[0].State != kumav1alpha1.InboundIgnored {
			return fmt.Errorf("its inbounds are %+v", inbound)
		}
		return nil
	})
	w.edit(t, service, func(o client.Object) { o.SetAnnotations(nil) })
	w.become(t, w.namespace, "cart")

	if err := w.Delete(t.Context(), &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}); err != nil {
		t.Fatal(err)
	}
	w.dataplanes(t, "cart", 1, ready("cart_"+w.namespace+"_svc_81"))
	if err := w.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error {
		err := w.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &kumav1alpha1.Dataplane{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Dataplane of a pod that is gone is still there: %v", err)
		}
		return nil
	})
	w.dataplanes(t, "cart", 1, ready("cart_"+w.namespace+"_svc_81"))

	w.label(t, map[string]string{kumav1alpha1.LabelMesh: w.mesh})
	w.become(t, w.namespace)
	w.dataplanes(t, "cart", 0, nil)
}

// A policy that refers to nothing says so, until it does.
func TestPolicies(t *testing.T) {
	w := begin(t, desired.Kubernetes, kumav1alpha1.ModeEverywhere)
	timeout := &kumav1alpha1.MeshTimeout{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cart", Labels: map[string]string{kumav1alpha1.LabelMesh: w.mesh}}}
	timeout.Spec.To = []kumav1alpha1.MeshTimeoutTo{{TargetRef: kumav1alpha1.ToTargetRef{Kind: "MeshService", Name: "cart_" + w.namespace + "_svc_80"}}}
	w.create(t, timeout)
	resolved := func(reason, text string) {
		t.Helper()
		wait.Until(t, func(ctx context.Context) error {
			if err := w.Get(ctx, client.ObjectKeyFromObject(timeout), timeout); err != nil {
				return err
			}
			if err := harness.CheckCondition(timeout.Status.Conditions, kumav1alpha1.ConditionResolved, "", reason); err != nil {
				return err
			}
			if !slices.ContainsFunc(timeout.Status.Conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, text) }) {
				return fmt.Errorf("it says %+v", timeout.Status.Conditions)
			}
			return nil
		})
	}
	resolved(kumav1alpha1.ReasonRefersToNothing, "spec.to[0].targetRef.name")
	w.create(t, w.deployment("cart", 1), w.kubeService("cart"))
	resolved(kumav1alpha1.ReasonResolved, "all references are resolved")
}

// Labels that a tenant sets do not give the tenant a service of another namespace, and synced objects are left as they are.
func TestTenantLabels(t *testing.T) {
	w := begin(t, desired.Kubernetes, kumav1alpha1.ModeEverywhere)
	labels := map[string]string{
		kumav1alpha1.LabelMesh: w.mesh, kumav1alpha1.LabelDisplayName: "cart", kumav1alpha1.LabelNamespace: "shop", kumav1alpha1.LabelZone: "west",
		kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy,
	}
	in := func(namespace string) *kumav1alpha1.MeshService {
		return &kumav1alpha1.MeshService{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cart-x", Labels: labels},
			Spec:       kumav1alpha1.MeshServiceSpec{Ports: []kumav1alpha1.Port{{Port: 80}}},
		}
	}
	generator := &kumav1alpha1.HostnameGenerator{ObjectMeta: metav1.ObjectMeta{Namespace: w.options.SystemNamespace, Name: "all"}}
	generator.Spec.Selector.MeshService = &kumav1alpha1.LabelMatch{}
	generator.Spec.Template = "{{ .DisplayName }}.{{ .Namespace }}.{{ .Zone }}.local"
	w.create(t, in(w.namespace), in(w.options.SystemNamespace), generator)
	for namespace, hostname := range map[string]string{
		w.namespace: "cart-x." + w.namespace + ".east.local", w.options.SystemNamespace: "cart.shop.west.local",
	} {
		w.service(t, namespace, "cart-x", func(s *kumav1alpha1.MeshService) error {
			if len(s.Status.Addresses) != 1 || s.Status.Addresses[0].Hostname != hostname {
				return fmt.Errorf("it is called %+v, want %s", s.Status.Addresses, hostname)
			}
			return vip(s)
		})
	}
	w.turn(t, kumav1alpha1.ModeDisabled)
	w.meshSays(t, kumav1alpha1.ModeDisabled, kumav1alpha1.ConditionGenerated, kumav1alpha1.ReasonDisabled)
	w.become(t, w.options.SystemNamespace, "cart-x")
	w.become(t, w.namespace, "cart-x")
}

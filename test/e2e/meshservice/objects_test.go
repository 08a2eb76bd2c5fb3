package meshservice_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// byHand is a scheduler that there is not: no node gets the pod, and so nobody but the test says how it is.
const byHand = "by-hand"

const grpcPort = "grpc"

// deployment has one pod, which says on which port it serves, if it does.
func deployment(name string, port int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	container := corev1.Container{Name: name, Image: name}
	if port != 0 {
		container.Ports = []corev1.ContainerPort{{Name: grpcPort, ContainerPort: port}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{SchedulerName: byHand, Containers: []corev1.Container{container}},
			},
		},
	}
}

// service leads to the pods of the Deployment of the same name.
func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{
				Port: 80, TargetPort: intstr.FromString(grpcPort), AppProtocol: ptr.To("grpc"),
			}},
		},
	}
}

// tag is the old identity of a service of the test.
func (s *stage) tag(service string) string { return model.KubernetesTag(service, s.namespace, 80) }

// cluster is the name of its MeshService's cluster.
func (s *stage) cluster(service string) string {
	return model.Key{Kind: model.MeshService, Name: service, Namespace: s.namespace, Zone: east, Mesh: s.mesh, Port: 80}.Cluster()
}

// target is what clients call it, before and after the switch.
func (s *stage) target(service string) string {
	return s.tag(service) + ".mesh:80"
}

// consumer is the name of a Deployment of the test as a consumer.
func (s *stage) consumer(name string) string { return s.namespace + "/Deployment/" + name }

// ingress leads to another zone, where these services have one instance each, all behind one address.
func (s *stage) ingress(t testing.TB, address string, services ...string) *kumav1alpha1.ZoneIngress {
	t.Helper()
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	z := &kumav1alpha1.ZoneIngress{
		ObjectMeta: metav1.ObjectMeta{Name: west + "-" + s.namespace, Namespace: system},
		Spec: kumav1alpha1.ZoneIngressSpec{Zone: west, Networking: kumav1alpha1.ZoneIngressNetworking{
			Address: host, Port: int32(port), AdvertisedAddress: host, AdvertisedPort: int32(port),
		}},
	}
	for _, name := range services {
		z.Spec.AvailableServices = append(z.Spec.AvailableServices, kumav1alpha1.AvailableService{
			Mesh: s.mesh, Instances: 1,
			Tags: map[string]string{kumav1alpha1.TagService: s.tag(name), kumav1alpha1.TagZone: west},
		})
	}
	t.Cleanup(func() {
		if err := s.Delete(context.WithoutCancel(t.Context()), z); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete ZoneIngress %s: %v", z.Name, err)
		}
	})
	return z
}

// runs makes a Deployment, plays the node for its pod, and waits for the pod's Dataplane.
func (s *stage) runs(t testing.TB, d *appsv1.Deployment) model.ProxyID {
	t.Helper()
	s.create(t, d)
	return s.play(t, d.Name, s.address())
}

// play gives the pod of a Deployment an address and has it ready, and waits for its Dataplane, which is an instance of the Service of
// that name if there is one.
func (s *stage) play(t testing.TB, app, address string) model.ProxyID {
	t.Helper()
	var name string
	wait.Until(t, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Status.PodIP == address {
				name = pod.Name
				return nil // An earlier try has written it, and its answer was lost.
			}
			if pod.Status.PodIP != "" || !pod.DeletionTimestamp.IsZero() {
				continue
			}
			name = pod.Name
			pod.Status = running(address)
			return s.Status().Update(ctx, pod)
		}
		return fmt.Errorf("%s has no new pod", app)
	})
	wait.Until(t, func(ctx context.Context) error {
		var dp kumav1alpha1.Dataplane
		if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &dp); err != nil {
			return err
		}
		if dp.Spec.Networking.Address != address {
			return errors.New("Dataplane " + name + " has another address")
		}
		err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: app}, &corev1.Service{})
		if err == nil && !slices.ContainsFunc(dp.Spec.Networking.Inbound, func(in kumav1alpha1.Inbound) bool { return in.Tags[kumav1alpha1.TagService] == s.tag(app) }) {
			return errors.New("Dataplane " + name + " is no instance of Service " + app + " yet")
		}
		return client.IgnoreNotFound(err)
	})
	return model.ProxyID{Mesh: s.mesh, Namespace: s.namespace, Name: name}
}

func running(address string) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
}

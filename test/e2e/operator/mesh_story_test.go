package operator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// meshOfStory is a mesh with something of every kind in it.
const meshOfStory = `
apiVersion: kuma.io/v1alpha1
kind: Mesh
metadata: {name: %[1]s}
spec: {meshServices: {mode: ReachableBackendRefs}}
---
{apiVersion: v1, kind: Service, metadata: {name: backend, namespace: %[1]s}, spec: {selector: {app: backend}, ports: [{port: 80, targetPort: 8080}]}}
---
apiVersion: kuma.io/v1alpha1
kind: HostnameGenerator
metadata: {name: %[1]s, namespace: kuma-system}
spec: {selector: {meshService: {matchLabels: {app: backend}}}, template: "{{ .DisplayName }}.%[1]s"}
---
apiVersion: kuma.io/v1alpha1
kind: ZoneIngress
metadata: {name: %[1]s, namespace: kuma-system}
spec: {zone: west, networking: {address: 192.0.2.10, port: 10001, advertisedAddress: 192.0.2.10, advertisedPort: 10001}}
---
apiVersion: kuma.io/v1alpha1
kind: MeshMultiZoneService
metadata: {name: %[1]s, namespace: kuma-system, labels: {kuma.io/mesh: %[1]s}}
spec: {selector: {meshService: {matchLabels: {kuma.io/display-name: backend}}}, ports: [{port: 80, appProtocol: http}]}
`

// policyOfStory is for the tag of the backend.
const policyOfStory = `
---
apiVersion: kuma.io/v1alpha1
kind: %[2]s
metadata: {name: backend, namespace: %[1]s, labels: {kuma.io/mesh: %[1]s}}
spec:
  to:
    - targetRef: {kind: MeshService, name: backend_%[1]s_svc_80}
`

// settingsOfStory are what each kind of policy asks for.
var settingsOfStory = map[string]string{
	"MeshTimeout":               "default: {connectionTimeout: 5s}",
	"MeshRetry":                 "default: {tcp: {maxConnectAttempt: 3}}",
	"MeshCircuitBreaker":        "default: {connectionLimits: {maxConnections: 2}}",
	"MeshLoadBalancingStrategy": "default: {loadBalancer: {type: RoundRobin}}",
	"MeshHTTPRoute":             "rules: [{matches: [{path: {type: PathPrefix, value: /}}], default: {}}]",
	"MeshTCPRoute":              "rules: [{default: {backendRefs: [{kind: MeshService, name: elsewhere}]}}]",
}

// meshSteps make a mesh with two consumers, switch them, and take the mesh away.
func (i *installation) meshSteps(t testing.TB) []storyStep {
	name := i.namespace + "-mesh"
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: name}}
	in := client.InNamespace(name)
	condition := func(kind string) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := i.Get(ctx, client.ObjectKeyFromObject(mesh), mesh); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(mesh.Status.Conditions, kind) {
				return fmt.Errorf("the Mesh says:%s", harness.DescribeConditions(mesh.Status.Conditions))
			}
			return nil
		}
	}
	return []storyStep{
		{"see the CRDs", func(ctx context.Context) error { return i.List(ctx, &kumav1alpha1.MeshTCPRouteList{}) }},
		{"make a mesh", func(ctx context.Context) error { return i.makeMesh(ctx, name) }},
		{"see it served", condition(kumav1alpha1.ConditionServed)},
		{"see its MeshServices", condition(kumav1alpha1.ConditionGenerated)},
		{"see its Dataplanes", func(ctx context.Context) error { return i.count(ctx, &kumav1alpha1.DataplaneList{}, 2, in) }},
		{"see an address", func(ctx context.Context) error {
			var service kumav1alpha1.MeshService
			if err := i.Get(ctx, client.ObjectKey{Namespace: name, Name: "backend"}, &service); err != nil {
				return err
			}
			if len(service.Status.VIPs) == 0 {
				return errors.New("the MeshService has none")
			}
			return nil
		}},
		{"see what its policies select", i.policiesResolved(name)},
		{"change a port and a label", func(ctx context.Context) error {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "backend"}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "backend"}}
			return errors.Join(
				i.Patch(ctx, service, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ports":[{"name":"http","port":80,"targetPort":9090}]}}`))),
				i.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"version":"v2"}}}`))))
		}},
		{"see both", i.changed(name)},
		{"ask for its consumers", func(context.Context) error {
			r := harness.RunCommand(t, i.hub, "migrate", "mesh", name, "--batch-size", "1", "--delay", "0s", "--allow-disconnected", "--yes")
			if r.Code != 0 {
				return wait.Permanent(errors.New(r.Stderr))
			}
			return nil
		}},
		{"see them switched", condition(kumav1alpha1.ConditionConsumersSwitched)},
		{"see where that is kept", func(ctx context.Context) error { return i.count(ctx, &fairleadv1alpha1.MeshConsumerSliceList{}, 2) }},
		{"remove the pods", func(ctx context.Context) error {
			return i.DeleteAllOf(ctx, &corev1.Pod{}, in, client.GracePeriodSeconds(0))
		}},
		{"see their Dataplanes go", func(ctx context.Context) error { return i.count(ctx, &kumav1alpha1.DataplaneList{}, 0, in) }},
		{"ask for no MeshServices", func(ctx context.Context) error {
			return i.Patch(ctx, mesh, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"meshServices":{"mode":"Disabled"}}}`)))
		}},
		{"see them go", func(ctx context.Context) error { return i.count(ctx, &kumav1alpha1.MeshServiceList{}, 0, in) }},
	}
}

func (i *installation) makeMesh(ctx context.Context, name string) error {
	for space, labels := range map[string]map[string]string{
		"kuma-system": nil,
		name:          {kumav1alpha1.LabelSidecarInjection: kumav1alpha1.InjectionEnabled, kumav1alpha1.LabelMesh: name},
	} {
		err := i.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space, Labels: labels}})
		if client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	manifests := fmt.Sprintf(meshOfStory, name)
	for kind, settings := range settingsOfStory {
		manifests += fmt.Sprintf(policyOfStory, name, kind) + "      " + settings + "\n"
	}
	objects, err := chart.Decode(manifests)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := client.IgnoreAlreadyExists(i.Create(ctx, o)); err != nil {
			return err
		}
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "backend-1"}}
	return errors.Join(i.runPod(ctx, name, "backend", "127.7.200.1", set), i.runPod(ctx, name, "cart", "127.7.200.2", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "cart-1"}}))
}

// runPod has a pod with an address, which a workload controls.
func (i *installation) runPod(ctx context.Context, namespace, app, ip string, by client.Object) error {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: app, Image: app}}},
	}
	kind := appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	switch by := by.(type) {
	case *appsv1.ReplicaSet:
		by.Spec = appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}
	case *batchv1.Job:
		kind = batchv1.SchemeGroupVersion.WithKind("Job")
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		by.Spec = batchv1.JobSpec{Suspend: ptr.To(true), Template: template}
	}
	by.SetNamespace(namespace)
	if err := i.Create(ctx, by); apierrors.IsAlreadyExists(err) {
		err = i.Get(ctx, client.ObjectKeyFromObject(by), by)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: app, Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(by, kind)},
		},
		Spec: template.Spec,
	}
	if err := i.Create(ctx, pod); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := i.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	return i.Status().Update(ctx, pod)
}

// policiesResolved waits until each policy has a status.
func (i *installation) policiesResolved(namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		for kind := range settingsOfStory {
			policy := &unstructured.Unstructured{}
			policy.SetGroupVersionKind(kumav1alpha1.GroupVersion.WithKind(kind))
			if err := i.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "backend"}, policy); err != nil {
				return err
			}
			if policy.Object["status"] == nil {
				return fmt.Errorf("%s backend has no status", kind)
			}
		}
		return nil
	}
}

// changed waits until MeshService and Dataplane follow their Service and pod.
func (i *installation) changed(namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		var service kumav1alpha1.MeshService
		if err := i.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "backend"}, &service); err != nil {
			return err
		}
		var proxy kumav1alpha1.Dataplane
		if err := i.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "backend"}, &proxy); err != nil {
			return err
		}
		if port := service.Spec.Ports[0].TargetPort; port.IntValue() != 9090 || proxy.Spec.Networking.Inbound[0].Tags["version"] != "v2" {
			return fmt.Errorf("the ports are %+v, the proxy is %+v", service.Spec.Ports, proxy.Spec.Networking)
		}
		return nil
	}
}

// count waits for a number of objects.
func (i *installation) count(ctx context.Context, list client.ObjectList, want int, in ...client.ListOption) error {
	if err := i.List(ctx, list, in...); err != nil {
		return err
	}
	if got := meta.LenList(list); got != want {
		return fmt.Errorf("there are %d, and not %d, of %T", got, want, list)
	}
	return nil
}

// forgetMesh removes what an operator that was refused has left.
func (i *installation) forgetMesh(t testing.TB) {
	t.Helper()
	name := i.namespace + "-mesh"
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: name}}
	all := []client.Object{mesh}
	for _, o := range []client.Object{&kumav1alpha1.HostnameGenerator{}, &kumav1alpha1.ZoneIngress{}, &kumav1alpha1.MeshMultiZoneService{}} {
		o.SetNamespace("kuma-system")
		o.SetName(name)
		all = append(all, o)
	}
	for _, o := range all {
		if err := i.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
	}
	kinds := []client.Object{&corev1.Pod{}, &kumav1alpha1.Dataplane{}, &kumav1alpha1.MeshService{}, &fairleadv1alpha1.MeshConsumerSlice{}}
	for kind := range settingsOfStory {
		policy := &unstructured.Unstructured{}
		policy.SetGroupVersionKind(kumav1alpha1.GroupVersion.WithKind(kind))
		kinds = append(kinds, policy)
	}
	for _, kind := range kinds {
		err := i.DeleteAllOf(t.Context(), kind, client.InNamespace(name), client.GracePeriodSeconds(0))
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

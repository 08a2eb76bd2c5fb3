package desired

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

func TestOwnAddresses(t *testing.T) {
	service := makeService("cart", tcp("", 80, intstr.FromInt32(80)))
	service.Spec.ClusterIP, service.Spec.ClusterIPs = "10.96.0.7", []string{"10.96.0.7", "fd00::7", "odd"}
	pending := makeService("cart", tcp("", 80, intstr.FromInt32(80)))
	headless := makeService("cart", tcp("", 80, intstr.FromInt32(80)))
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	generated := MeshServicesOf(service, injected(), nil, nil, onKubernetes)[0]
	ofPod := MeshServicesOf(headless, injected(), []*corev1.Pod{makePod("cart-0", "cart")}, nil, onKubernetes)[0]
	theirs := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: service.Namespace}}
	pod, hostNetwork, finished := makePod("cart-0", "cart"), makePod("cart-0", "cart"), makePod("cart-0", "cart")
	hostNetwork.Spec.HostNetwork, finished.Status.Phase = true, corev1.PodFailed
	for name, c := range map[string]struct {
		of     *kumav1alpha1.MeshService
		behind *corev1.Service
		named  *corev1.Pod
		want   []string
		own    bool
	}{
		"of its Service":                     {generated, service, nil, []string{"10.96.0.7", "fd00::7"}, true},
		"of a Service without any yet":       {generated, pending, nil, nil, true},
		"of a Service that is gone":          {generated, nil, nil, nil, true},
		"of its pod":                         {ofPod, headless, pod, []string{"10.1.0.1"}, true},
		"of a pod with that of its node":     {ofPod, headless, hostNetwork, nil, true},
		"of a finished pod":                  {ofPod, headless, finished, nil, true},
		"of another's pod":                   {ofPod, headless, makePod("cart-0", "other"), nil, true},
		"of a pod that is gone":              {ofPod, headless, nil, nil, true},
		"somebody's, beside a Service":       {theirs, service, nil, []string{"10.96.0.7", "fd00::7"}, true},
		"somebody's, beside a headless one":  {theirs, headless, nil, nil, false},
		"somebody's, beside one without any": {theirs, pending, nil, nil, false},
		"somebody's":                         {theirs, nil, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if behind := BackingService(c.of, onKubernetes); behind != "cart" {
				t.Errorf("the Service %q is looked for", behind)
			}
			if got, own := KubernetesAddresses(c.of, c.behind, c.named, onKubernetes); !slices.Equal(got, c.want) || own != c.own {
				t.Errorf("they are %v, its own: %t", got, own)
			}
		})
	}
	universal := onKubernetes
	universal.Environment = Universal
	synced := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{
		Name: "cart", Namespace: onKubernetes.SystemNamespace, Labels: map[string]string{kumav1alpha1.LabelZone: "west"},
	}}
	if BackingService(theirs, universal) != "" || BackingService(synced, onKubernetes) != "" {
		t.Error("a Service is looked for where none can be")
	}
}

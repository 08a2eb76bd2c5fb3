package operator_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/internal/operator"
)

// meshValues are those of a mesh.
func meshValues(mesh map[string]any, passages ...any) map[string]any {
	values := map[string]any{"mesh": mesh}
	if passages != nil {
		values["passages"] = passages
	}
	return values
}

func serving(more map[string]any) map[string]any {
	all := map[string]any{"enabled": true, "certificateSecret": "proxies"}
	maps.Copy(all, more)
	return all
}

func TestChartMesh(t *testing.T) {
	served := []string{"--mesh-bind-address=:5678", "--mesh-cert-file=/etc/fairlead/mesh/tls.crt", "--mesh-key-file=/etc/fairlead/mesh/tls.key"}
	zone := []string{"--mesh-environment=kubernetes", "--mesh-zone=default", "--mesh-namespace=kuma-system"}
	limits := []string{
		"--mesh-max-connections=10000", "--mesh-max-handshakes=500", "--mesh-max-pending=1000", "--mesh-max-request-bytes=4194304",
		"--mesh-send-timeout=1m", "--mesh-max-streams=256", "--mesh-max-token-reviews=200",
	}
	where := []string{
		"--mesh-environment=kubernetes", "--mesh-zone=default", "--mesh-namespace=kuma-system",
		"--mesh-service-cidr=241.0.0.0/8", "--mesh-tag-cidr=240.0.0.0/8", "--mesh-namespace-vips=0", "--mesh-service-grace=1m",
	}
	reports := []string{"--mesh-serving-reports"}
	for name, c := range map[string]struct {
		values map[string]any
		// args are those of the operator, and serving those of the processes that serve proxies.
		args, serving []string
		// volumes are those of the mesh, and what is mounted there.
		volumes map[string]string
	}{
		"not served, unless somebody says so": {nil, where, nil, map[string]string{}},
		"served": {
			meshValues(map[string]any{"serving": serving(nil)}), slices.Concat(where, reports), slices.Concat(zone, served, limits),
			map[string]string{"mesh-certificate": "proxies"},
		},
		"served, with limits": {
			meshValues(map[string]any{"serving": serving(map[string]any{"limits": map[string]any{
				"connections": 20_000_000, "pending": 50, "requestBytes": 1_000_000, "sendTimeout": "30s", "tokenReviews": 10,
			}})}),
			slices.Concat(where, reports), slices.Concat(zone, served, []string{
				"--mesh-max-connections=20000000", "--mesh-max-handshakes=500", "--mesh-max-pending=50", "--mesh-max-request-bytes=1000000",
				"--mesh-send-timeout=30s", "--mesh-max-streams=256", "--mesh-max-token-reviews=10",
			}),
			map[string]string{"mesh-certificate": "proxies"},
		},
		"served by a passage that does not run": {meshValues(map[string]any{"serving": serving(nil)}, "revision"), where, nil, map[string]string{}},
		"universal": {
			meshValues(map[string]any{
				"environment": "universal", "zone": "east", "namespace": "mesh", "serviceGrace": "5s",
				"serviceCIDR": "10.1.0.0/16", "tagCIDR": "10.2.0.0/16", "namespaceVIPs": 100, "serving": serving(map[string]any{"port": 6000, "clientCAConfigMap": "authority"}),
			}, "meshservice"),
			slices.Concat([]string{
				"--mesh-environment=universal", "--mesh-zone=east", "--mesh-namespace=mesh",
				"--mesh-service-cidr=10.1.0.0/16", "--mesh-tag-cidr=10.2.0.0/16", "--mesh-namespace-vips=100", "--mesh-service-grace=5s",
			}, reports),
			slices.Concat([]string{
				"--mesh-environment=universal", "--mesh-zone=east", "--mesh-namespace=mesh", "--mesh-bind-address=:6000",
			}, served[1:], []string{"--mesh-client-ca-file=/etc/fairlead/mesh-ca/ca.crt"}, limits),
			map[string]string{"mesh-certificate": "proxies", "mesh-ca": "authority"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rendered(t, c.values)
			var deployment appsv1.Deployment
			r.find(t, "Deployment", "fairlead", &deployment)
			if diff := cmp.Diff(c.args, meshArgs(deployment)); diff != "" {
				t.Errorf("flags: %s", diff)
			}
			accepted(t, deployment.Spec.Template.Spec.Containers[0].Args)
			for _, v := range deployment.Spec.Template.Spec.Volumes {
				if strings.HasPrefix(v.Name, "mesh-") {
					t.Errorf("the operator has %s, and serves nobody", v.Name)
				}
			}
			pod := corev1.PodSpec{}
			if len(c.volumes) > 0 {
				var serving appsv1.Deployment
				r.find(t, "Deployment", "fairlead-mesh", &serving)
				pod = serving.Spec.Template.Spec
				if diff := cmp.Diff(c.serving, meshArgs(serving)); diff != "" {
					t.Errorf("flags of the processes that serve proxies: %s", diff)
				}
				acceptedByServing(t, pod.Containers[0].Args)
			}
			mounted := map[string]string{}
			for _, v := range pod.Volumes {
				switch {
				case v.Name == "mesh-certificate":
					mounted[v.Name] = v.Secret.SecretName
				case v.Name == "mesh-ca":
					mounted[v.Name] = v.ConfigMap.Name
				}
			}
			if diff := cmp.Diff(c.volumes, mounted); diff != "" {
				t.Errorf("volumes: %s", diff)
			}
			for name := range c.volumes {
				if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name }) {
					t.Errorf("%s is mounted nowhere", name)
				}
			}
			for _, object := range r.Objects {
				if len(c.volumes) == 0 && strings.HasSuffix(object.GetName(), "-mesh") {
					t.Errorf("%s %s is for proxies that are not served", object.GetKind(), object.GetName())
				}
			}
			if reported := strings.Contains(r.Notes, "fairlead-mesh.fairlead-system.svc"); reported != (len(c.volumes) > 0) {
				t.Errorf("notes: %s", r.Notes)
			}
		})
	}
}

// meshArgs are the flags of a mesh that a Deployment has.
func meshArgs(d appsv1.Deployment) []string {
	return slices.DeleteFunc(slices.Clone(d.Spec.Template.Spec.Containers[0].Args), func(a string) bool { return !strings.HasPrefix(a, "--mesh-") })
}

// acceptedByServing has a process that serves proxies read the flags of the chart.
func acceptedByServing(t testing.TB, args []string) {
	t.Helper()
	options := operator.DefaultServeMeshOptions()
	flags := pflag.NewFlagSet("serve-mesh", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Errorf("serve-mesh does not know them: %v", err)
	}
	if diff := cmp.Diff([]string{"serve-mesh"}, flags.Args()); diff != "" {
		t.Errorf("arguments: %s", diff)
	}
	if err := options.Validate(); err != nil {
		t.Errorf("serve-mesh refuses them: %v", err)
	}
}

// accepted has the operator read the flags of the chart, as it does when it starts.
func accepted(t testing.TB, args []string) {
	t.Helper()
	options := operator.DefaultOptions()
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Errorf("the operator does not know them: %v", err)
	}
	if diff := cmp.Diff([]string{"operator"}, flags.Args()); diff != "" {
		t.Errorf("arguments: %s", diff)
	}
	if err := options.Validate(); err != nil {
		t.Errorf("the operator refuses them: %v", err)
	}
}

func TestChartServesMesh(t *testing.T) {
	values := meshValues(map[string]any{"serving": serving(map[string]any{
		"replicas": 3, "serviceAccount": map[string]any{"name": "proxies", "annotations": map[string]any{"a": "b"}},
		"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}},
	})})
	values["networkPolicy"] = map[string]any{"meshFrom": []any{map[string]any{"podSelector": map[string]any{}}}}
	r := rendered(t, values)
	var service corev1.Service
	r.find(t, "Service", "fairlead-mesh", &service)
	var deployment, own appsv1.Deployment
	r.find(t, "Deployment", "fairlead-mesh", &deployment)
	r.find(t, "Deployment", "fairlead", &own)
	container := deployment.Spec.Template.Spec.Containers[0]
	port := service.Spec.Ports[0]
	if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return p.Name == port.TargetPort.StrVal && p.ContainerPort == 5678
	}) || port.Port != 5678 {
		t.Errorf("the Service leads to %+v", port)
	}
	for what, selector := range map[string]map[string]string{"Service": service.Spec.Selector, "Deployment": deployment.Spec.Selector.MatchLabels} {
		if !labels.SelectorFromSet(selector).Matches(labels.Set(deployment.Spec.Template.Labels)) || labels.SelectorFromSet(selector).Matches(labels.Set(own.Spec.Template.Labels)) {
			t.Errorf("the %s is for other pods: %v", what, selector)
		}
	}
	if labels.SelectorFromSet(own.Spec.Selector.MatchLabels).Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Error("the pods that serve proxies are the operator's")
	}
	if *deployment.Spec.Replicas != 3 || container.Resources.Limits.Memory().String() != "1Gi" || deployment.Spec.Template.Spec.ServiceAccountName != "proxies" {
		t.Errorf("%d replicas of %s with %v", *deployment.Spec.Replicas, deployment.Spec.Template.Spec.ServiceAccountName, container.Resources)
	}
	var account corev1.ServiceAccount
	r.find(t, "ServiceAccount", "proxies", &account)
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		var binding rbacv1.ClusterRoleBinding
		r.find(t, kind, "fairlead-mesh", &binding)
		if len(binding.Subjects) != 1 || binding.Subjects[0].Name != "proxies" {
			t.Errorf("%s %s grants %v", kind, binding.Name, binding.Subjects)
		}
	}
	var budget policyv1.PodDisruptionBudget
	r.find(t, "PodDisruptionBudget", "fairlead-mesh", &budget)
	var admits, operators networkingv1.NetworkPolicy
	r.find(t, "NetworkPolicy", "fairlead-mesh", &admits)
	r.find(t, "NetworkPolicy", "fairlead", &operators)
	for what, selector := range map[string]*metav1.LabelSelector{"PodDisruptionBudget": budget.Spec.Selector, "NetworkPolicy": &admits.Spec.PodSelector} {
		if diff := cmp.Diff(deployment.Spec.Selector.MatchLabels, selector.MatchLabels); diff != "" {
			t.Errorf("the %s is for other pods: %s", what, diff)
		}
	}
	peers := func(p networkingv1.NetworkPolicy) int {
		for _, rule := range p.Spec.Ingress {
			if rule.Ports[0].Port.StrVal == "mesh" {
				return len(rule.From)
			}
		}
		return -1
	}
	if peers(admits) != 1 || peers(operators) != -1 {
		t.Errorf("proxies are admitted to the processes that serve them by %d peers, and to the operator by %d", peers(admits), peers(operators))
	}
}

// TestChartServingWrites: the processes that serve proxies write nothing but their reports.
func TestChartServingWrites(t *testing.T) {
	r := rendered(t, meshValues(map[string]any{"serving": serving(nil)}))
	var all rbacv1.ClusterRole
	var own rbacv1.Role
	r.find(t, "ClusterRole", ":fairlead-mesh", &all)
	r.find(t, "Role", "fairlead-mesh", &own)
	for p := range permissionsOf(slices.Concat(all.Rules, own.Rules)) {
		writes := p.verb != "list" && p.verb != "watch"
		if writes && p.resource != "meshservingreports.fairlead.dev" && !strings.HasSuffix(p.resource, "reviews.authentication.k8s.io") && !strings.HasSuffix(p.resource, "reviews.authorization.k8s.io") {
			t.Errorf("they may %s", p)
		}
	}
}

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
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fairlead/fairlead/internal/meshservice"
	"github.com/fairlead/fairlead/internal/operator"
)

// meshValues are self-signed ones with these of a mesh.
func meshValues(mesh map[string]any, passages ...any) map[string]any {
	values := selfSigned()
	values["mesh"] = mesh
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
	served := []string{
		"--mesh-bind-address=:5678", "--mesh-cert-file=/etc/fairlead/mesh/tls.crt", "--mesh-key-file=/etc/fairlead/mesh/tls.key",
		"--mesh-pod=fairlead-system/$(POD_NAME)",
	}
	limits := []string{
		"--mesh-max-connections=10000", "--mesh-max-handshakes=500", "--mesh-max-pending=1000", "--mesh-max-request-bytes=4194304",
		"--mesh-send-timeout=1m", "--mesh-max-streams=256", "--mesh-max-token-reviews=200",
	}
	where := []string{
		"--mesh-environment=kubernetes", "--mesh-zone=default", "--mesh-namespace=kuma-system",
		"--mesh-service-cidr=241.0.0.0/8", "--mesh-tag-cidr=240.0.0.0/8", "--mesh-namespace-vips=0", "--mesh-service-grace=1m",
	}
	for name, c := range map[string]struct {
		values map[string]any
		args   []string
		// volumes are those of the mesh, and what is mounted there.
		volumes map[string]string
	}{
		"not served, unless somebody says so": {selfSigned(), where, map[string]string{}},
		"served": {
			meshValues(map[string]any{"serving": serving(nil)}), slices.Concat(where, served, limits), map[string]string{"mesh-certificate": "proxies"},
		},
		"served, with limits": {
			meshValues(map[string]any{"serving": serving(map[string]any{"limits": map[string]any{
				"connections": 20_000_000, "pending": 50, "requestBytes": 1_000_000, "sendTimeout": "30s", "tokenReviews": 10,
			}})}),
			slices.Concat(where, served, []string{
				"--mesh-max-connections=20000000", "--mesh-max-handshakes=500", "--mesh-max-pending=50", "--mesh-max-request-bytes=1000000",
				"--mesh-send-timeout=30s", "--mesh-max-streams=256", "--mesh-max-token-reviews=10",
			}),
			map[string]string{"mesh-certificate": "proxies"},
		},
		"served by a passage that does not run": {meshValues(map[string]any{"serving": serving(nil)}, "revision"), where, map[string]string{}},
		"universal": {
			meshValues(map[string]any{
				"environment": "universal", "zone": "east", "namespace": "mesh", "serviceGrace": "5s",
				"serviceCIDR": "10.1.0.0/16", "tagCIDR": "10.2.0.0/16", "namespaceVIPs": 100, "serving": serving(map[string]any{"port": 6000, "clientCAConfigMap": "authority"}),
			}, "meshservice"),
			slices.Concat([]string{
				"--mesh-environment=universal", "--mesh-zone=east", "--mesh-namespace=mesh",
				"--mesh-service-cidr=10.1.0.0/16", "--mesh-tag-cidr=10.2.0.0/16", "--mesh-namespace-vips=100", "--mesh-service-grace=5s", "--mesh-bind-address=:6000",
			}, served[1:], []string{"--mesh-client-ca-file=/etc/fairlead/mesh-ca/ca.crt"}, limits),
			map[string]string{"mesh-certificate": "proxies", "mesh-ca": "authority"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rendered(t, c.values)
			var deployment appsv1.Deployment
			r.find(t, "Deployment", "fairlead", &deployment)
			pod := deployment.Spec.Template.Spec
			args := slices.DeleteFunc(slices.Clone(pod.Containers[0].Args), func(a string) bool { return !strings.HasPrefix(a, "--mesh-") })
			if diff := cmp.Diff(c.args, args); diff != "" {
				t.Errorf("flags: %s", diff)
			}
			accepted(t, pod.Containers[0].Args)
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
	r := rendered(t, meshValues(map[string]any{"serving": serving(nil)}))
	var service corev1.Service
	r.find(t, "Service", "-mesh", &service)
	var deployment appsv1.Deployment
	r.find(t, "Deployment", "fairlead", &deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	port := service.Spec.Ports[0]
	if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return p.Name == port.TargetPort.StrVal && p.ContainerPort == 5678
	}) || port.Port != 5678 {
		t.Errorf("the Service leads to %+v", port)
	}
	want := maps.Clone(deployment.Spec.Selector.MatchLabels)
	want[meshservice.LabelServing] = "true"
	if diff := cmp.Diff(want, service.Spec.Selector); diff != "" {
		t.Errorf("the Service is for other pods: %s", diff)
	}
	if _, marked := deployment.Spec.Template.Labels[meshservice.LabelServing]; marked {
		t.Error("every pod is marked as the one that serves")
	}
	if len(container.Env) != 1 || container.Env[0].Name != "POD_NAME" || container.Env[0].ValueFrom.FieldRef.FieldPath != "metadata.name" {
		t.Errorf("a pod does not know its name: %+v", container.Env)
	}
	var role rbacv1.Role
	r.find(t, "Role", "-mesh", &role)
	if diff := cmp.Diff([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "patch"}}}, role.Rules); diff != "" {
		t.Error(diff)
	}
}

package operator_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// monitored are values with everything that Prometheus and Grafana take.
func monitored(more map[string]any) map[string]any {
	values := meshValues(map[string]any{"serving": serving(nil)})
	on := map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}}
	values["metrics"] = map[string]any{"serviceMonitor": on, "podMonitor": on, "rules": on, "dashboards": map[string]any{"enabled": true}}
	for key, value := range more {
		values[key] = value
	}
	return values
}

// monitor is what Fairlead uses of a ServiceMonitor and a PodMonitor.
type monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Endpoints           []endpoint `json:"endpoints"`
		PodMetricsEndpoints []endpoint `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type endpoint struct {
	Port        string `json:"port"`
	Scheme      string `json:"scheme"`
	Path        string `json:"path"`
	Interval    string `json:"interval"`
	HonorLabels bool   `json:"honorLabels"`
	TLSConfig   struct {
		InsecureSkipVerify bool `json:"insecureSkipVerify"`
	} `json:"tlsConfig"`
	Authorization struct {
		Credentials corev1.SecretKeySelector `json:"credentials"`
	} `json:"authorization"`
}

// Nothing of another operator's API is installed unless somebody asks for that.
func TestChartMonitorsNothingByDefault(t *testing.T) {
	r := rendered(t, meshValues(map[string]any{"serving": serving(nil)}))
	for _, object := range r.Objects {
		if strings.Contains(object.GetAPIVersion(), "monitoring.coreos.com") || strings.HasSuffix(object.GetName(), "-scraper") || object.GetKind() == "ConfigMap" {
			t.Errorf("%s %s", object.GetKind(), object.GetName())
		}
	}
	values := monitored(nil)
	delete(values, "mesh")
	if r := rendered(t, values); r.has("PodMonitor") || !r.has("ServiceMonitor") {
		t.Error("pods are monitored that nobody asked for, or a Service is not")
	}
}

// What is scraped are ports that exist, of pods and Services that are found, with a token that may get metrics and nothing else.
func TestChartMonitors(t *testing.T) {
	r := rendered(t, monitored(nil))
	want := endpoint{Scheme: "https", Path: "/metrics", Interval: "30s", HonorLabels: true}
	want.TLSConfig.InsecureSkipVerify = true
	want.Authorization.Credentials = corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "fairlead-scraper"}, Key: "token"}

	var services, pods monitor
	r.find(t, "ServiceMonitor", "fairlead", &services)
	r.find(t, "PodMonitor", "fairlead-mesh", &pods)
	for port, endpoints := range map[string][]endpoint{"https-metrics": services.Spec.Endpoints, "metrics": pods.Spec.PodMetricsEndpoints} {
		want.Port = port
		if diff := cmp.Diff([]endpoint{want}, endpoints); diff != "" {
			t.Errorf("%s: %s", port, diff)
		}
	}
	var service corev1.Service
	r.find(t, "Service", "-metrics", &service)
	selects(t, services.Spec.Selector.MatchLabels, service.Labels)
	if service.Spec.Ports[0].Name != "https-metrics" {
		t.Errorf("ports %+v", service.Spec.Ports)
	}
	var deployment appsv1.Deployment
	r.find(t, "Deployment", "-mesh", &deployment)
	selects(t, pods.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels)

	var secret corev1.Secret
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	r.find(t, "Secret", "-scraper", &secret)
	r.find(t, "ClusterRole", "-scraper", &role)
	r.find(t, "ClusterRoleBinding", "-scraper", &binding)
	if secret.Type != corev1.SecretTypeServiceAccountToken || secret.Annotations[corev1.ServiceAccountNameKey] != binding.Subjects[0].Name {
		t.Errorf("%+v is bound to %+v", secret, binding)
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, role.Rules); diff != "" {
		t.Error(diff)
	}
	for _, kind := range []string{"ServiceMonitor", "PodMonitor", "PrometheusRule"} {
		for _, object := range r.Objects {
			if object.GetKind() == kind && object.GetLabels()["release"] != "prometheus" {
				t.Errorf("%s has the labels %v", kind, object.GetLabels())
			}
		}
	}
}

func selects(t testing.TB, selector, labels map[string]string) {
	t.Helper()
	for key, value := range selector {
		if labels[key] != value {
			t.Errorf("%s=%s is not among %v", key, value, labels)
		}
	}
}

// The rules are those that promtool tests, as they are: no template of Helm takes part in those of Prometheus.
func TestChartRules(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	var tested map[string]any
	readYAML(t, filepath.Join(root, "charts", "fairlead", "monitoring", "alerts.yaml"), &tested)
	for _, object := range rendered(t, monitored(nil)).Objects {
		if object.GetKind() != "PrometheusRule" {
			continue
		}
		text, err := yaml.Marshal(object.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := yaml.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tested, got); diff != "" {
			t.Error(diff)
		}
		return
	}
	t.Error("there is no PrometheusRule")
}

// There is a dashboard for each passage, which Grafana's sidecar finds.
func TestChartDashboards(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, object := range rendered(t, monitored(nil)).Objects {
		if object.GetKind() != "ConfigMap" {
			continue
		}
		if object.GetLabels()["grafana_dashboard"] != "1" {
			t.Errorf("%s has the labels %v", object.GetName(), object.GetLabels())
		}
		data, _, _ := unstructured.NestedStringMap(object.Object, "data")
		for name, text := range data {
			passage := strings.TrimSuffix(strings.TrimPrefix(name, "fairlead-"), ".json")
			found = append(found, passage)
			file, err := os.ReadFile(filepath.Join(root, "charts", "fairlead", "dashboards", passage+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var want, got any
			if err := json.Unmarshal(file, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if uid := got.(map[string]any)["uid"]; uid != "fairlead-"+passage {
				t.Errorf("%s has the uid %v", name, uid)
			}
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff([]string{"adoption", "meshservice", "revision", "rollout"}, found); diff != "" {
		t.Error(fmt.Sprint("dashboards: ", diff))
	}
}

package operator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// release is the chart, rendered, with a test's ways of looking into it.
type release struct{ chart.Release }

func renderChart(name, namespace string, values map[string]any) (release, error) {
	r, err := chart.Render(name, namespace, values)
	return release{r}, err
}

func rendered(t testing.TB, values map[string]any) release {
	t.Helper()
	r, err := renderChart("fairlead", "fairlead-system", values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// find fills into with the one object of its kind whose name ends as given.
func (r release) find(t testing.TB, kind, suffix string, into any) {
	t.Helper()
	for _, object := range r.Objects {
		if object.GetKind() == kind && strings.HasSuffix(object.GetName(), suffix) {
			// Strict, so that a misspelt field is not taken for one left out.
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("the chart has no %s %s", kind, suffix)
}

// roles are those that are about one namespace.
func (r release) roles(t testing.TB) []rbacv1.Role {
	t.Helper()
	var all []rbacv1.Role
	for _, object := range r.Objects {
		if object.GetKind() != "Role" {
			continue
		}
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		all = append(all, role)
	}
	return all
}

func certificateFrom(source, secret string) map[string]any {
	return map[string]any{"operator": map[string]any{"certificate": map[string]any{"source": source, "secretName": secret}}}
}

func (r release) has(kind string) bool {
	return slices.ContainsFunc(r.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
}

func TestChartDeployment(t *testing.T) {
	r := rendered(t, nil)
	var deployment appsv1.Deployment
	r.find(t, "Deployment", "fairlead", &deployment)
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]

	if *deployment.Spec.Replicas != 2 {
		t.Errorf("%d replicas", *deployment.Spec.Replicas)
	}
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("pod: %+v", pod.SecurityContext)
	}
	security := container.SecurityContext
	if !*security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation || security.Capabilities.Drop[0] != "ALL" {
		t.Errorf("container: %+v", security)
	}
	if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
		t.Error("no resource requests")
	}
	if len(pod.TopologySpreadConstraints) != 1 {
		t.Error("replicas are not spread")
	}
	if container.LivenessProbe.HTTPGet.Path != "/healthz" || container.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Error("no probes")
	}
	var budget policyv1.PodDisruptionBudget
	r.find(t, "PodDisruptionBudget", "fairlead", &budget)
	if diff := cmp.Diff(deployment.Spec.Selector, budget.Spec.Selector); diff != "" {
		t.Errorf("the budget is for other pods: %s", diff)
	}
	for key, value := range deployment.Spec.Selector.MatchLabels {
		if deployment.Spec.Template.Labels[key] != value {
			t.Errorf("pods do not have the label %s that they are selected by", key)
		}
	}
	for _, object := range r.Objects {
		if object.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
			t.Errorf("%s %s has no labels", object.GetKind(), object.GetName())
		}
	}
	if !strings.Contains(r.Notes, "rollout status deployment/fairlead") {
		t.Errorf("notes: %s", r.Notes)
	}
}

func TestChartRoleIsTheGeneratedOne(t *testing.T) {
	var role, generated rbacv1.ClusterRole
	rendered(t, nil).find(t, "ClusterRole", ":fairlead", &role)
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	readYAML(t, filepath.Join(root, "charts", "fairlead", "generated", "role.yaml"), &generated)
	if diff := cmp.Diff(generated.Rules, role.Rules); diff != "" {
		t.Error(diff)
	}
	for _, rule := range role.Rules {
		for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
			if slices.Contains(list, "*") {
				t.Errorf("a wildcard in %+v", rule)
			}
		}
	}
}

func TestChartWithoutCRDsAsksForNoPermissionOnThem(t *testing.T) {
	var role rbacv1.ClusterRole
	rendered(t, map[string]any{"installCRDs": false}).find(t, "ClusterRole", ":fairlead", &role)
	for _, rule := range role.Rules {
		for _, name := range rule.ResourceNames {
			if strings.HasSuffix(name, ".sailoperator.io") {
				t.Errorf("%+v", rule)
			}
		}
	}
	if len(role.Rules) == 0 {
		t.Error("no rules left")
	}
}

func TestChartOptions(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	values := map[string]any{
		"image":               map[string]any{"digest": digest},
		"passages":            []any{"revision"},
		"podDisruptionBudget": map[string]any{"enabled": false},
		"metrics":             map[string]any{"readerRole": false},
		"resources":           map[string]any{"limits": map[string]any{"cpu": 1}},
		"members":             map[string]any{"qps": 50, "burst": 1e6},
		"fullnameOverride":    "mover",
	}
	r := rendered(t, values)
	var deployment appsv1.Deployment
	r.find(t, "Deployment", "mover", &deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.Image != "fairlead@"+digest {
		t.Errorf("image is %s", container.Image)
	}
	for _, want := range []string{"--passages=revision", "--member-qps=50", "--member-burst=1000000"} {
		if !slices.Contains(container.Args, want) {
			t.Errorf("%s is not among the args %v", want, container.Args)
		}
	}
	if r.has("PodDisruptionBudget") {
		t.Error("the budget is still there")
	}
}

func TestChartPodLabels(t *testing.T) {
	var deployment appsv1.Deployment
	rendered(t, map[string]any{"podLabels": map[string]any{"team": "mesh"}}).find(t, "Deployment", "fairlead", &deployment)
	labels := deployment.Spec.Template.Labels
	if labels["team"] != "mesh" || labels["app.kubernetes.io/name"] != "fairlead" {
		t.Errorf("%v", labels)
	}
}

// TestChartNames lets the API server judge the names that a release comes to.
func TestChartNames(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	admin := administrator(t, c.Config())
	namespace := c.Namespace(t)
	mesh := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kuma-system"}}
	if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), mesh)); err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("r", 53)
	cases := map[string]struct {
		release string
		values  map[string]any
		service string
	}{
		"a release of our name":       {"fairlead", nil, "fairlead-metrics"},
		"a release of another name":   {"mover", nil, "mover-fairlead-metrics"},
		"the longest name of all":     {longest, nil, longest + "-f-metrics"},
		"a name with dots":            {"mesh.v2", nil, "mesh-v2-fairlead-metrics"},
		"a name that starts as digit": {"2nd", nil, "fairlead-2nd-metrics"},
		"a name cut at a dash": {
			longest[:45], map[string]any{"nameOverride": "movement-of-meshes"}, longest[:45] + "-movement-metrics",
		},
		"the longest override": {
			"fairlead", map[string]any{"fullnameOverride": longest + "rr"}, longest + "rr-metrics",
		},
		"the longest name override": {
			longest[:9], map[string]any{"nameOverride": longest + "rrrrrrrrrr"}, longest[:9] + "-" + longest[:45] + "-metrics",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := renderChart(tc.release, namespace, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			var service corev1.Service
			r.find(t, "Service", "-metrics", &service)
			if service.Name != tc.service {
				t.Errorf("the Service is named %s", service.Name)
			}
			for _, object := range r.Objects {
				if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), object.DeepCopy(), client.DryRunAll)); err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
			}
		})
	}
}

func TestChartRefusesValues(t *testing.T) {
	cases := map[string]struct {
		values map[string]any
		want   string
	}{
		"a misspelt one":                  {map[string]any{"replica": 3}, "replica"},
		"a misspelt inner one":            {map[string]any{"image": map[string]any{"tags": "x"}}, "tags"},
		"an unknown passage":              {map[string]any{"passages": []any{"flight"}}, "passages"},
		"a privileged port":               {map[string]any{"metrics": map[string]any{"port": 443}}, "port"},
		"an unknown level":                {map[string]any{"log": map[string]any{"level": "loud"}}, "level"},
		"a name that leaves no room":      {map[string]any{"fullnameOverride": strings.Repeat("x", 56)}, "fullnameOverride"},
		"a name that no Service can have": {map[string]any{"fullnameOverride": "my.fairlead"}, "fullnameOverride"},
		"a label that pods are selected by": {
			map[string]any{"podLabels": map[string]any{"app.kubernetes.io/name": "mine"}}, "app.kubernetes.io/name",
		},
		"the other one": {
			map[string]any{"podLabels": map[string]any{"team": "a", "app.kubernetes.io/instance": "mine"}}, "app.kubernetes.io/instance",
		},
		"half a digest":          {map[string]any{"image": map[string]any{"digest": "sha256:12"}}, "digest"},
		"no request at all":      {map[string]any{"members": map[string]any{"qps": 0}}, "qps"},
		"an unknown certificate": {certificateFrom("vault", ""), "source"},
		"a Secret without name":  {certificateFrom("secret", ""), "secretName"},
		"memory that is none":    {map[string]any{"webhook": map[string]any{"memory": "much"}}, "memory"},
		"a peer of no kind":      {map[string]any{"networkPolicy": map[string]any{"webhookFrom": []any{map[string]any{"cidr": "192.0.2.0/28"}}}}, "webhookFrom"},
		"a mesh of machines":     {meshValues(map[string]any{"environment": "vm"}), "environment"},
		"a zone with a dot":      {meshValues(map[string]any{"zone": "a.b"}), "zone"},
		"a range of IPv6":        {meshValues(map[string]any{"serviceCIDR": "fd00::/64"}), "serviceCIDR"},
		"half a range":           {meshValues(map[string]any{"tagCIDR": "240.0.0.0"}), "tagCIDR"},
		"proxies without TLS":    {meshValues(map[string]any{"serving": map[string]any{"enabled": true}}), "certificateSecret"},
		"proxies without tokens": {meshValues(map[string]any{"environment": "universal", "serving": serving(nil)}), "clientCAConfigMap"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := renderChart("fairlead", "fairlead-system", c.values)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// The schema lists what a user may choose, so it must know every passage that the binary does.
func TestChartKnowsAllPassages(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Passages struct {
				Items struct {
					Enum []string `json:"enum"`
				} `json:"items"`
			} `json:"passages"`
		} `json:"properties"`
	}
	readYAML(t, filepath.Join(root, "charts", "fairlead", "values.schema.json"), &schema)
	if diff := cmp.Diff(operator.Names(), schema.Properties.Passages.Items.Enum); diff != "" {
		t.Error(diff)
	}
}

// Every value that the schema takes has a default that says what it is for.
func TestChartValuesAndSchemaAgree(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var compare func(where string, schema node, values map[string]any)
	compare = func(where string, schema node, values map[string]any) {
		for key, raw := range schema.Properties {
			value, found := values[key]
			if !found {
				if where+key != ".global" && where != ".resources." && where != ".affinity." {
					t.Errorf("%s%s is in the schema only", where, key)
				}
				continue
			}
			var inner node
			if err := json.Unmarshal(raw, &inner); err != nil {
				t.Fatal(err)
			}
			if nested, ok := value.(map[string]any); ok && inner.Properties != nil {
				compare(where+key+".", inner, nested)
			}
		}
	}
	var schema node
	var values map[string]any
	readYAML(t, filepath.Join(root, "charts", "fairlead", "values.schema.json"), &schema)
	readYAML(t, filepath.Join(root, "charts", "fairlead", "values.yaml"), &values)
	compare(".", schema, values)
}

func readYAML(t testing.TB, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestChartWarnsOfDeletions(t *testing.T) {
	r := rendered(t, nil)
	for _, kind := range []string{"istios", "istiorevisiontags"} {
		var policy admissionv1.ValidatingAdmissionPolicy
		var binding admissionv1.ValidatingAdmissionPolicyBinding
		name := kind + ".fairlead.fairlead-system.deletion.fairlead.dev"
		r.find(t, "ValidatingAdmissionPolicy", name, &policy)
		r.find(t, "ValidatingAdmissionPolicyBinding", name, &binding)
		if binding.Spec.PolicyName != policy.Name || !slices.Equal(binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Warn}) {
			t.Errorf("%s is bound as %+v", policy.Name, binding.Spec)
		}
	}
	if rendered(t, map[string]any{"passages": []any{"rollout"}}).has("ValidatingAdmissionPolicy") {
		t.Error("there are policies for kinds that nobody looks after")
	}
}

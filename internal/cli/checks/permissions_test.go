package checks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// What the operator may do is compared with all that the chart grants for the passages that it runs.
func TestNeededBy(t *testing.T) {
	const (
		crd     = "patch customresourcedefinitions.apiextensions.k8s.io materializes.materialize.cloud"
		status  = "patch materializes.materialize.cloud/status"
		secrets = "delete secrets"
		lease   = "update leases.coordination.k8s.io fairlead-rollout in kube-system"
		istiod  = "create gateways.networking.istio.io"
		virtual = "patch customresourcedefinitions.apiextensions.k8s.io virtualservices.networking.istio.io"
		records = "create configmaps in kuma-system"
	)
	for name, c := range map[string]struct {
		arguments     []string
		with, without []string
	}{
		"all passages":           {[]string{"--mesh-namespace=kuma-system"}, []string{crd, status, secrets, lease, istiod, virtual, records, "create tokenreviews.authentication.k8s.io"}, nil},
		"one":                    {[]string{"--passages=rollout", "--mesh-namespace=kuma-system"}, []string{crd, status, secrets, lease}, []string{istiod, virtual, records}},
		"one without its CRDs":   {[]string{"--passages=rollout", "--install-crds=false"}, []string{status, secrets}, []string{crd}},
		"Istio's CRDs":           {[]string{"--passages=revision", "--install-crds=false"}, []string{virtual, istiod}, []string{crd, "patch customresourcedefinitions.apiextensions.k8s.io istios.sailoperator.io"}},
		"one of a newer version": {[]string{"--passages=rollout,newer"}, []string{secrets}, []string{istiod}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Args: append([]string{"operator"}, c.arguments...)}}
			asked, err := neededBy(d)
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, a := range asked {
				texts = append(texts, a.String())
			}
			for _, want := range c.with {
				if !slices.Contains(texts, want) {
					t.Errorf("it does not ask whether the operator may %s", want)
				}
			}
			for _, other := range c.without {
				if slices.Contains(texts, other) {
					t.Errorf("it asks whether the operator may %s", other)
				}
			}
			if distinct := slices.Compact(slices.Sorted(slices.Values(texts))); len(distinct) != len(texts) {
				t.Errorf("%d of %d are asked for more than once", len(texts)-len(distinct), len(texts))
			}
		})
	}
}

func TestLacking(t *testing.T) {
	asked := []access{{verb: "list", group: "apps", resource: "deployments"}, {"patch", "kuma.io", "meshes/status", "shop", "default"}}
	got, err := lacking(t.Context(), asked, func(_ context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
		if a.Resource == "meshes" && (a.Subresource != "status" || a.Namespace != "shop" || a.Name != "default") {
			t.Errorf("asked for %+v", a)
		}
		return a.Resource == "deployments", nil
	})
	if diff := cmp.Diff([]string{"patch meshes.kuma.io/status default in shop"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := lacking(t.Context(), asked, func(context.Context, authorizationv1.ResourceAttributes) (bool, error) {
		return false, errors.New("no answer")
	}); err == nil {
		t.Error("what is not known counts as lacking")
	}
}

// Whoever installs the chart creates one of each of its kinds.
func TestToInstallHasEveryKindOfTheChart(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "chart", "testdata", "default.golden.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(golden), "---\n") {
		var object struct {
			APIVersion string
			Kind       string
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.Kind == "" {
			continue
		}
		group, _, found := strings.Cut(object.APIVersion, "/")
		if !found {
			group = ""
		}
		plural := strings.ToLower(object.Kind) + "s"
		if cut, found := strings.CutSuffix(plural, "ys"); found {
			plural = cut + "ies"
		}
		if !slices.Contains(toInstall, access{verb: "create", group: group, resource: plural}) {
			t.Errorf("it does not ask whether the caller may create %s", plural)
		}
	}
	if !slices.Contains(toInstall, access{verb: "escalate", group: rbacv1.GroupName, resource: "clusterroles"}) {
		t.Error("it does not ask whether the caller may grant what the caller does not have")
	}
}

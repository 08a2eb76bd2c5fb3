package helm_test

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// versions of Istio's charts: the oldest and the newest, with FAIRLEAD_TESTS=full all.
func versions() []string {
	if faults.Full() {
		return []string{"v1.24.0", "v1.26.0", "v1.31.0", "v1.31.1"}
	}
	return []string{"v1.24.0", "v1.31.1"}
}

func TestInstallAndUpgradeIstiod(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.istiod("v1.24.0")
	h.install(spec)
	h.isDeployed(spec, 1)
	before := h.render(spec)
	h.has(before, true)
	for _, object := range before {
		live := h.live(object)
		if live.GetLabels()[v1.LabelPassage] != v1.PassageRevision {
			t.Errorf("%s lacks the label of the passage", describe(object))
		}
		owner := metav1.GetControllerOf(live)
		if owner == nil || owner.UID != spec.Owner.UID || owner.BlockOwnerDeletion != nil {
			t.Errorf("%s belongs to %v", describe(object), owner)
		}
		if managers := live.GetManagedFields(); len(managers) != 1 || managers[0].Manager != v1.FieldOwner || managers[0].Operation != "Apply" {
			t.Errorf("%s is managed by %v", describe(object), managers)
		}
	}

	next := spec
	next.Chart, next.ChartVersion = istio(t, "v1.26.0", "istiod"), "v1.26.0"
	h.install(next)
	h.isDeployed(next, 2)
	h.has(h.render(next), true)
	wanted := map[string]bool{}
	for _, object := range h.render(next) {
		wanted[describe(object)] = true
	}
	for _, object := range before {
		if !wanted[describe(object)] && h.live(object) != nil {
			t.Errorf("%s is no longer in the chart, but in the cluster", describe(object))
		}
	}
	if changed := h.restoreAll(next, h.render(next)); changed != nil {
		t.Errorf("right after the upgrade, these differ: %v", changed)
	}

	all := append(before, h.render(next)...)
	h.uninstall(next)
	h.gone(all)
	if left := h.records(next); len(left) > 0 {
		t.Errorf("%d records are left", len(left))
	}
	h.uninstall(next)
}

func TestNothingDiffersAfterInstall(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for _, version := range versions() {
		specs := map[string]release.Spec{"istiod " + version: h.istiod(version)}
		for _, profile := range []string{"ambient", "demo"} {
			spec := h.istiod(version)
			spec.Values["profile"] = profile
			specs["istiod "+version+" "+profile] = spec
		}
		for name, spec := range specs {
			t.Run(name, func(t *testing.T) {
				h := h.in(t)
				h.settles(spec)
				h.uninstall(spec)
			})
		}
	}
}

// settles demands that after an install nothing differs, and nothing is left to write.
func (h *hub) settles(spec release.Spec) {
	h.t.Helper()
	injector := faults.New()
	h.Manager, h.Client = h.connect(injector.Config(h.config))
	h.install(spec)
	written := len(injector.Log())
	if changed := h.restoreAll(spec, h.render(spec)); changed != nil {
		h.t.Errorf("these differ: %v", changed)
	}
	h.install(spec)
	if log := injector.Log()[written:]; len(log) > 0 {
		h.t.Errorf("with nothing to do, this was written:\n%s", log)
	}
}

// base is the release of what all control planes share. There can only be one at a time.
func (h *hub) base(version string) release.Spec {
	h.t.Helper()
	namespace := h.cluster.Namespace(h.t)
	return release.Spec{
		Name: "istio-base", Namespace: namespace, TakeOwnership: true, Owner: h.owner(),
		Chart: istio(h.t, version, "base"), ChartVersion: version,
		Values: map[string]any{"defaultRevision": "canary", "global": map[string]any{"istioNamespace": namespace}},
	}
}

func TestCRDsOutliveTheirRelease(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.base("v1.24.0")
	h.settles(spec)
	var crds, others []*unstructured.Unstructured
	for _, object := range h.render(spec) {
		if object.GetKind() == "CustomResourceDefinition" {
			crds = append(crds, object)
		} else {
			others = append(others, object)
		}
	}
	if len(crds) < 10 || len(others) == 0 {
		t.Fatalf("the chart has %d CRDs and %d other objects", len(crds), len(others))
	}
	for _, crd := range crds {
		if owners := h.live(crd).GetOwnerReferences(); len(owners) > 0 {
			t.Errorf("%s would go with %v", describe(crd), owners)
		}
	}
	h.uninstall(spec)
	h.gone(others)
	h.has(crds, true)

	elsewhere := h.base("v1.31.1")
	h.settles(elsewhere)
	h.uninstall(elsewhere)
}

func TestTagsAlone(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	want := map[string][]string{
		"v1.24.0": {"MutatingWebhookConfiguration"},
		"v1.31.1": {"Service", "MutatingWebhookConfiguration"},
	}
	for version, kinds := range want {
		t.Run(version, func(t *testing.T) {
			h := h.in(t)
			spec := h.istiod(version)
			spec.Name = "tag-prod"
			spec.Values["revisionTags"] = []any{"prod"}
			spec.Only = tagTemplates
			h.install(spec)
			objects := h.render(spec)
			var got []string
			for _, object := range objects {
				got = append(got, object.GetKind())
			}
			if diff := cmp.Diff(kinds, got); diff != "" {
				t.Errorf("kinds (-want +got):\n%s", diff)
			}
			if changed := h.restoreAll(spec, objects); changed != nil {
				t.Errorf("these differ: %v", changed)
			}
			h.uninstall(spec)
			h.gone(objects)
		})
	}
}

// tagTemplates are those of Istio's chart that make a tag, with the helpers they need.
func tagTemplates(template string) bool {
	base := path.Base(template)
	return strings.HasPrefix(base, "revision-tags") || strings.HasPrefix(base, "_") || strings.HasPrefix(base, "zz")
}

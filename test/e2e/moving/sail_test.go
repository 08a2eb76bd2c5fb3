package moving_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
)

// TestMoveFromSailOperator: two meshes of a Sail Operator, one updated in place, and one with a revision for each version and a tag.
func TestMoveFromSailOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "cluster", "revision")
	w.installCRDs(t, "revision", "helm")
	w.apply(t, "sail-operator.yaml", "sail-operator")
	for _, r := range w.sailReleases(t) {
		w.sailInstalls(t, r)
	}
	w.istiodHasWritten(t)
	for _, key := range []string{"istio-system/istiod", "istio-canary/istiod-canary-v1-24-0", "istio-canary/istiod-canary-v1-26-0", "shop/cart", "bank/vault", sailOperator} {
		w.serving(t, key)
	}
	w.label(t, "shop", "istio-injection", "enabled")
	w.label(t, "bank", v1.LabelRevision, "live")

	m := move{world: w, passage: "revision", system: "Sail Operator", other: w.deployed(sailOperator)}
	m.holdsBeside(t)
	before := m.running(t, m.other.namespace)
	m.plans(t, "another controller has written", "istio", "default")
	m.takesOver(t)
	m.healthy(t, "default", "default", "v1.24.0")
	m.healthy(t, "canary", "canary-v1-26-0", "v1.26.0")
	m.serves(t, "canary-v1-24-0", "v1.24.0")
	m.tagged(t, "canary-v1-26-0")
	// Configuration without a revision is validated, too.
	unchanged(t, before, m.running(t, m.other.namespace), "ValidatingWebhookConfiguration /istiod-default-validator")
	m.checkSays(t, "ok")

	// A value that the user takes back goes.
	harness.Change(t, w, istio(), func(i *v1.Istio) { i.Spec.Values = nil })
	harness.WaitFor(t, w, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, func(live *v1.IstioRevision) error {
		if _, has := live.Spec.Values["meshConfig"]; has {
			return fmt.Errorf("values %v", live.Spec.Values)
		}
		return nil
	})

	// The next upgrade of both.
	m.upgrade(t, "default", "v1.26.0")
	m.upgrade(t, "canary", "v1.31.0")
	m.healthy(t, "default", "default", "v1.26.0")
	m.healthy(t, "canary", "canary-v1-31-0", "v1.31.0")
	m.tagged(t, "canary-v1-31-0")
	for _, key := range []string{"istio-system/istiod", "istio-canary/istiod-canary-v1-31-0"} {
		if image := w.serving(t, key).Spec.Template.Spec.Containers[0].Image; strings.HasSuffix(image, ":1.24.0") || strings.HasSuffix(image, ":1.26.0") {
			t.Errorf("Deployment %s runs %s after the upgrade", key, image)
		}
	}
	m.serves(t, "canary-v1-24-0", "v1.24.0")

	m.goesBackToSail(t)
}

func (w world) upgrade(t *testing.T, name, version string) {
	t.Helper()
	harness.Change(t, w, &v1.Istio{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(i *v1.Istio) { i.Spec.Version = version })
}

// goesBackToSail leaves to a Sail Operator, which finds its releases, and restarts nothing.
func (m move) goesBackToSail(t *testing.T) {
	t.Helper()
	m.istiodHasWritten(t)
	m.uninstalls(t)
	m.handsTagBack(t)
	before := m.running(t, m.other.namespace)
	for _, r := range m.sailReleases(t) {
		m.sailUpgrades(t, r)
	}
	unchanged(t, before, m.running(t, m.other.namespace))
	for _, r := range m.revisions(t) {
		if slices.ContainsFunc(r.Finalizers, func(name string) bool { return strings.HasPrefix(name, "fairlead.dev/") }) {
			t.Errorf("IstioRevision %s has the finalizers %v", r.Name, r.Finalizers)
		}
		if metav1.GetControllerOf(&r) == nil {
			t.Errorf("IstioRevision %s has lost its owner", r.Name)
		}
	}
}

// handsTagBack has the objects of the tag belong to the release that a Sail Operator has for the tag, as the page says. Helm does so
// itself for those that the release had before.
func (w world) handsTagBack(t *testing.T) {
	t.Helper()
	hooks, services := &admissionv1.MutatingWebhookConfigurationList{}, &corev1.ServiceList{}
	of := client.MatchingLabels{"istio.io/tag": "live"}
	if err := errors.Join(w.List(t.Context(), hooks, of), w.List(t.Context(), services, of)); err != nil {
		t.Fatal(err)
	}
	var all []client.Object
	for i := range hooks.Items {
		all = append(all, &hooks.Items[i])
	}
	for i := range services.Items {
		all = append(all, &services.Items[i])
	}
	if len(all) != 2 {
		t.Errorf("the tag has %d objects", len(all))
	}
	for _, object := range all {
		harness.Change(t, w, object, func(object client.Object) {
			annotations := object.GetAnnotations()
			annotations["meta.helm.sh/release-name"] = "live-revisiontags"
			object.SetAnnotations(annotations)
		})
	}
}

func (w world) revisions(t *testing.T) []v1.IstioRevision {
	t.Helper()
	list := &v1.IstioRevisionList{}
	if err := w.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// sailReleases are those that a Sail Operator makes of the revisions and the tag as they are.
func (w world) sailReleases(t *testing.T) []sailRelease {
	t.Helper()
	tag := &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: "live"}}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(tag), tag); err != nil {
		t.Fatal(err)
	}
	var all []sailRelease
	add := func(r *v1.IstioRevision, owner client.Object, kind, namespace, name, chart string, values map[string]any) {
		all = append(all, sailRelease{namespace, name, sailChart(t, r.Spec.Version, chart), values, *metav1.NewControllerRef(owner, v1.GroupVersion.WithKind(kind))})
	}
	for _, r := range w.revisions(t) {
		add(&r, &r, v1.IstioRevisionKind, r.Spec.Namespace, r.Name+"-istiod", "istiod", sailValues(&r))
		if r.Name == v1.DefaultRevision {
			add(&r, &r, v1.IstioRevisionKind, "sail-operator", "default-base", "base", sailValues(&r))
		}
		if r.Name == tag.Status.IstioRevision {
			values := sailValues(&r)
			values["revisionTags"] = []any{"live"}
			add(&r, tag, v1.IstioRevisionTagKind, r.Spec.Namespace, "live-revisiontags", "revisiontags", values)
		}
	}
	return all
}

// sailValues are those that the Sail Operator installs a revision with: those of the IstioRevision, with what it overrides.
func sailValues(r *v1.IstioRevision) map[string]any {
	values := map[string]any(r.Spec.Values.DeepCopy())
	if values == nil {
		values = map[string]any{}
	}
	values["defaultRevision"] = ""
	// The Sail Operator brings Istio's CRDs itself.
	values["base"] = map[string]any{"enableCRDTemplates": false}
	values["revision"] = r.Name
	if r.Name == v1.DefaultRevision {
		values["revision"] = ""
	}
	global, _ := values["global"].(map[string]any)
	if global == nil {
		global = map[string]any{}
	}
	global["istioNamespace"] = r.Spec.Namespace
	values["global"] = global
	return values
}

// istiodHasWritten sets what istiod sets in webhooks, once it serves.
func (w world) istiodHasWritten(t *testing.T) {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfigurationList{}, &admissionv1.ValidatingWebhookConfigurationList{}
	if err := errors.Join(w.List(t.Context(), mutating), w.List(t.Context(), validating)); err != nil {
		t.Fatal(err)
	}
	for _, item := range mutating.Items {
		harness.Change(t, w, &item, func(c *admissionv1.MutatingWebhookConfiguration) {
			for i := range c.Webhooks {
				c.Webhooks[i].ClientConfig.CABundle = w.Config().CAData
			}
		})
	}
	for _, item := range validating.Items {
		harness.Change(t, w, &item, func(c *admissionv1.ValidatingWebhookConfiguration) {
			for i := range c.Webhooks {
				c.Webhooks[i].ClientConfig.CABundle, c.Webhooks[i].FailurePolicy = w.Config().CAData, ptr.To(admissionv1.Fail)
			}
		})
	}
}

// serving waits until the pods of a Deployment are ready.
func (w world) serving(t *testing.T, key string) *appsv1.Deployment {
	t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	return harness.WaitFor(t, w, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, func(d *appsv1.Deployment) error {
		if s, want := d.Status, *d.Spec.Replicas; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != want || s.ReadyReplicas != want || s.Replicas != want {
			return fmt.Errorf("not ready: %+v", d.Status)
		}
		return nil
	})
}

func (w world) label(t *testing.T, namespace, key, value string) {
	t.Helper()
	harness.Change(t, w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) {
		metav1.SetMetaDataLabel(&n.ObjectMeta, key, value)
	})
}

// healthy waits until Fairlead reports that a revision of an Istio serves.
func (w world) healthy(t *testing.T, istio, revision, version string) {
	t.Helper()
	harness.WaitFor(t, w, &v1.Istio{ObjectMeta: metav1.ObjectMeta{Name: istio}}, func(live *v1.Istio) error {
		if live.Status.ObservedGeneration != live.Generation || live.Status.State != v1.StateHealthy || live.Status.ActiveRevisionName != revision || !writtenBy(live, "fairlead/revision") {
			return fmt.Errorf("%s, active %s: %s", live.Status.State, live.Status.ActiveRevisionName, harness.DescribeConditions(live.Status.Conditions))
		}
		return nil
	})
	w.serves(t, revision, version)
}

// serves waits until Fairlead reports that a revision serves, in a version.
func (w world) serves(t *testing.T, revision, version string) {
	t.Helper()
	harness.WaitFor(t, w, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: revision}}, func(live *v1.IstioRevision) error {
		if slices.Contains(live.Finalizers, "sailoperator.io/sail-operator") {
			return errors.New("the finalizer of the Sail Operator is left, and nobody would remove it")
		}
		if live.Spec.Version != version || !writtenBy(live, "fairlead/revision") || live.Status.State != v1.StateHealthy || !meta.IsStatusConditionTrue(live.Status.Conditions, string(v1.ConditionReady)) {
			return fmt.Errorf("version %s: %s", live.Spec.Version, harness.DescribeConditions(live.Status.Conditions))
		}
		return nil
	})
}

// tagged waits until Fairlead reports that the tag leads to a revision.
func (w world) tagged(t *testing.T, revision string) {
	t.Helper()
	harness.WaitFor(t, w, &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: "live"}}, func(live *v1.IstioRevisionTag) error {
		if live.Status.State != v1.StateHealthy || live.Status.IstioRevision != revision || !writtenBy(live, "fairlead/revision") {
			return fmt.Errorf("%s, to %s: %s", live.Status.State, live.Status.IstioRevision, harness.DescribeConditions(live.Status.Conditions))
		}
		return nil
	})
}

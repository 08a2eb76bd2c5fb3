package objects

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// frontends are the Deployments of balancerd and the console, by name.
func frontends(t *testing.T, m *v1alpha2.Materialize) map[string]*unstructured.Unstructured {
	t.Helper()
	all, err := Shared(m, ActiveConfig{Spec: &m.Spec, Image: m.Spec.EnvironmentdImageRef, Selector: NamesOf(m).GenerationLabels(2)})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, object := range all {
		if object.GroupVersionKind() == KindDeployment {
			found[object.GetLabels()[v1alpha2.LabelApp]] = object
		}
	}
	return found
}

// TestUpgradeRestartsNoFrontend: pods that an earlier Fairlead has made without a security context are not restarted to get
// one. They get it when they change in any case.
func TestUpgradeRestartsNoFrontend(t *testing.T) {
	m := makeMaterialize()
	m.Status.ActiveGeneration = 2
	now := frontends(t, m)
	// What the last version without security contexts annotated.
	for app, digest := range map[string]string{AppBalancerd: "b8f8975103effdef", AppConsole: "a89fa42e044330d2"} {
		t.Run(app, func(t *testing.T) {
			want, have := now[app], withoutPodSecurity(m, now[app])
			if got := have.GetAnnotations()[v1alpha2.AnnotationApplied]; got != digest {
				t.Fatalf("this is not what was applied before: digest %s, want %s", got, digest)
			}
			if why := Drift(KeepPodSecurity(m, want, have), have); why != "" {
				t.Errorf("the upgrade changes it: %s", why)
			}
			scaled := frontends(t, changed(func(m *v1alpha2.Materialize) { *m.Spec.BalancerdReplicas, *m.Spec.ConsoleReplicas = 5, 5 }))[app]
			kept := KeepPodSecurity(m, scaled, have)
			if !sameTemplate(kept, have) || sameTemplate(scaled, have) || Drift(kept, have) != "spec.replicas changes" {
				t.Errorf("to scale it restarts its pods: %s", Drift(kept, have))
			}
			if again := KeepPodSecurity(m, scaled, kept); Drift(again, kept) != "" {
				t.Errorf("it changes once more: %s", Drift(again, kept))
			}
			upgraded := frontends(t, changed(func(m *v1alpha2.Materialize) { m.Spec.EnvironmentdImageRef = "materialize/environmentd:v2" }))[app]
			if KeepPodSecurity(m, upgraded, have) != upgraded {
				t.Error("its pods are replaced without a security context")
			}
			edited := want.DeepCopy()
			unstructured.RemoveNestedField(edited.Object, "spec", "template", "spec", "securityContext")
			if KeepPodSecurity(m, want, edited) != want {
				t.Error("a security context that another client has removed is not restored")
			}
		})
	}
}

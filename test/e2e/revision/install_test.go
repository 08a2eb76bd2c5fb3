package revision_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// containing matches what has a name in its own name, or is in a namespace that has.
func containing(name string) func(kind string, object client.Object) bool {
	return func(_ string, object client.Object) bool {
		return strings.Contains(object.GetNamespace()+"/"+object.GetName(), name)
	}
}

// The namespace of a control plane and of the tag that leads to it may come late, go, come back, and go for good.
func TestNamespaceCreatedLater(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name := shortName(t)
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name + "-home"}}
	istio := harness.Create(t, w, revisionBased(name, home.Name, "v1.31.1", 0))
	tag := harness.Create(t, w, makeTag(name+"-tag", v1.IstioKind, name))
	revision := makeRevision(name+"-v1-31-1", "", "")

	waits := "namespace " + home.Name + " does not exist; create it, and the installation goes on"
	missing := func() {
		t.Helper()
		got := says(t, w, revision, v1.ConditionReconciled, v1.ReasonNamespaceNotFound)
		if got.Status != metav1.ConditionFalse || got.Message != waits {
			t.Errorf("the revision says %s: %s", got.Status, got.Message)
		}
		got = says(t, w, istio, v1.ConditionReady, v1.ReasonNamespaceNotFound)
		if got.Status != metav1.ConditionFalse || got.Message != "IstioRevision "+revision.Name+": "+waits {
			t.Errorf("the Istio says %s: %s", got.Status, got.Message)
		}
		if condition(revision, v1.ConditionReady).Status != metav1.ConditionFalse {
			t.Errorf("the revision says %s", said(revision))
		}
	}
	serves := func() {
		t.Helper()
		ready(t, w, istio)
		w.points(t, tag, revision.Name)
		// The operator may see that the namespace is back before it sees what went with the namespace.
		wait.Until(t, func(ctx context.Context) error {
			releases, err := w.releases(ctx, home.Name)
			if releases[revision.Name+"-istiod"] != "deployed v1.31.1" {
				err = errors.Join(err, fmt.Errorf("the releases are %v", releases))
			}
			if found := w.installedFor(t, tag.Name); len(found) != 3 {
				err = errors.Join(err, fmt.Errorf("installed for the tag are %q, want webhook, Service and record", found))
			}
			return err
		})
	}
	missing()
	says(t, w, tag, v1.ConditionReconciled, v1.ReasonIstiodNotReady)
	// Not even what does not need the namespace is there.
	got, err := w.inventory(t.Context(), containing(name))
	want := []string{"Istio /" + name, "IstioRevision /" + revision.Name, "IstioRevisionTag /" + tag.Name}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("there are %v: %v", got, err)
	}

	t.Log("the namespace appears")
	harness.Create(t, w, home.DeepCopy())
	serves()

	t.Log("the namespace goes, and with it all but what is not in it")
	w.delete(t, home)
	missing()
	waiting := says(t, w, tag, v1.ConditionReconciled, v1.ReasonNamespaceNotFound)
	if want := fmt.Sprintf("namespace %s of IstioRevision %s does not exist; create it, and the tag is then installed", home.Name, revision.Name); waiting.Message != want {
		t.Errorf("the tag says %q, want %q", waiting.Message, want)
	}
	harness.Create(t, w, home.DeepCopy())
	serves()

	t.Log("the namespace goes for good, and the tag and the Istio after it")
	w.delete(t, home)
	missing()
	w.delete(t, tag)
	w.delete(t, istio)
	w.nothingLeft(t, containing(name))
}

// Values that Istio's charts refuse, before anything is installed and after.
func TestStoryInvalidValues(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name := shortName(t)
	istio := inPlace(name, w.namespace(t), "v1.24.0")
	istio.Spec.Profile = "nonsense"
	harness.Create(t, w, istio)
	revision := makeRevision(name, "", "")

	got := says(t, w, revision, v1.ConditionReconciled, v1.ReasonTemplateError)
	const want = "execution error at (istiod/templates/zzz_profile.yaml:31:3): unknown profile nonsense; " +
		"nothing more is tried until the spec changes"
	if got.Status != metav1.ConditionFalse || got.Message != want {
		t.Errorf("the revision says %s: %s", got.Status, got.Message)
	}
	got = says(t, w, istio, v1.ConditionReady, v1.ReasonTemplateError)
	if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, want) || istio.Status.State != v1.State(v1.ReasonTemplateError) {
		t.Errorf("the Istio is %s and says %s: %s", istio.Status.State, got.Status, got.Message)
	}
	there, err := w.inventory(t.Context(), containing(name))
	if err != nil || fmt.Sprint(there) != fmt.Sprint([]string{"Istio /" + name, "IstioRevision /" + name}) {
		t.Errorf("there are %v: %v", there, err)
	}

	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Profile = "demo" })
	ready(t, w, istio)

	t.Log("broken again, what runs goes on to run")
	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Values = v1.Values{"serviceAnnotations": int64(7)} })
	got = says(t, w, revision, v1.ConditionReconciled, v1.ReasonTemplateError)
	if !strings.Contains(got.Message, "istiod/templates/service.yaml") {
		t.Errorf("the revision says %s: %s", got.Status, got.Message)
	}
	if releases, err := w.releases(t.Context(), istio.Spec.Namespace); err != nil || releases[name+"-istiod"] != "deployed v1.24.0" {
		t.Errorf("the releases are %v: %v", releases, err)
	}
}

func TestUnknownVersion(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	namespace, name := w.namespace(t), shortName(t)
	istio := harness.Create(t, w, inPlace(name, namespace, "v1.25.3"))
	revision := harness.Create(t, w, makeRevision(name+"-r", namespace, "v1.25.3"))
	const nearest = "of which the nearest are v1.26.0, v1.24.0"
	for _, object := range []client.Object{istio, revision} {
		got := says(t, w, object, v1.ConditionReconciled, v1.ReasonVersionNotFound)
		if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "v1.25.3") || !strings.Contains(got.Message, nearest) {
			t.Errorf("%T says %s: %s", object, got.Status, got.Message)
		}
	}
	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Version = "v1.26.0" })
	ready(t, w, istio)
}

// Objects of the same names that another Helm release has installed.
func TestObjectsOfAnotherRelease(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	namespace, name := w.namespace(t), shortName(t)
	theirs := w.helmInstall(t, types.NamespacedName{Namespace: namespace, Name: "theirs"}, "v1.24.0", "istiod", map[string]any{
		"revision": name, "global": map[string]any{"istioNamespace": namespace},
	})
	before := w.writers(t, theirs)
	revision := harness.Create(t, w, makeRevision(name, namespace, "v1.26.0"))

	got := says(t, w, revision, v1.ConditionReconciled, v1.ReasonOwnedByOthers)
	if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, " exists and belongs to Helm release "+namespace+"/theirs") {
		t.Errorf("it says %s: %s", got.Status, got.Message)
	}
	if diff := cmp.Diff(before, w.writers(t, theirs)); diff != "" {
		t.Errorf("of what belongs to others, something was touched:\n%s", diff)
	}
	// What all share may have found its place here.
	if releases, err := w.releases(t.Context(), namespace); err != nil || releases[name+"-istiod"] != "" {
		t.Errorf("there are releases %v: %v", releases, err)
	}

	t.Log("they go")
	for _, object := range theirs {
		if err := client.IgnoreNotFound(w.Delete(t.Context(), object)); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, func(ctx context.Context) error { return w.is(ctx, revision, v1.ConditionReady) })
}

// helmInstall brings a chart to the cluster as Helm itself would.
func (w *world) helmInstall(t testing.TB, release types.NamespacedName, version, chart string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	objects := rendered(t, release, version, chart, values)
	for _, object := range objects {
		annotations := map[string]string{"meta.helm.sh/release-name": release.Name, "meta.helm.sh/release-namespace": release.Namespace}
		for key, value := range object.GetAnnotations() {
			annotations[key] = value
		}
		object.SetAnnotations(annotations)
		err := w.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("helm"))
		if err != nil {
			t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		harness.DeleteAfter(t, w, object)
	}
	return objects
}

// writers are who has written to objects, status aside.
func (w *world) writers(t testing.TB, objects []*unstructured.Unstructured) map[string][]string {
	t.Helper()
	writers := map[string][]string{}
	for _, object := range objects {
		live := object.DeepCopy()
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
			t.Fatal(err)
		}
		for _, entry := range live.GetManagedFields() {
			if entry.Subresource == "" {
				key := object.GetKind() + " " + object.GetName()
				writers[key] = append(writers[key], fmt.Sprint(entry.Manager, " ", entry.Operation, " ", entry.Time))
			}
		}
	}
	return writers
}

package revision_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/history"
)

func TestRetarget(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, blue, green := shortName(t), w.namespace(t), w.namespace(t)
	revisions := map[string]*v1.IstioRevision{}
	for _, r := range []*v1.IstioRevision{
		makeRevision(name+"-a", blue, "v1.24.0"),
		makeRevision(name+"-b", blue, "v1.31.0"),
		makeRevision(name+"-c", blue, "v1.31.1"),
		makeRevision(name+"-d", green, "v1.31.1"),
	} {
		revisions[r.Name] = harness.Create(t, w, r)
	}
	for _, r := range revisions {
		ready(t, w, r)
	}
	tag := harness.Create(t, w, makeTag(name, v1.IstioRevisionKind, name+"-a"))
	webhooks := history.Follow[*admissionv1.MutatingWebhookConfiguration](t, w, &admissionv1.MutatingWebhookConfigurationList{}, ofTag(name))

	// webhook, record and, of newer charts, Service.
	installed := func(namespace string, service bool) []string {
		objects := []string{
			"MutatingWebhookConfiguration /istio-revision-tag-" + name + "-" + namespace,
			"Secret " + namespace + "/sh.helm.release.v1." + name + "-revisiontag",
		}
		if service {
			objects = append(objects, "Service "+namespace+"/istiod-revision-tag-"+name)
		}
		return objects
	}
	var uids []types.UID
	for _, step := range []struct {
		why, target, namespace string
		installed              []string
	}{
		{"for the first time", name + "-a", blue, installed(blue, false)},
		{"in the same namespace", name + "-b", blue, installed(blue, true)},
		{"with its Service", name + "-c", blue, installed(blue, true)},
		{"in another namespace", name + "-d", green, installed(green, true)},
		{"and back, to charts that make no Service", name + "-a", blue, installed(blue, false)},
	} {
		t.Log(step.why)
		harness.Change(t, w, tag, func(tag *v1.IstioRevisionTag) { tag.Spec.TargetRef.Name = step.target })
		w.points(t, tag, step.target)
		if tag.Status.IstiodNamespace != step.namespace {
			t.Errorf("%s: the tag points into namespace %s", step.why, tag.Status.IstiodNamespace)
		}
		w.injects(t, name, step.namespace+"/istiod-"+step.target)
		if diff := cmp.Diff(step.installed, w.installedFor(t, name)); diff != "" {
			t.Errorf("%s: installed for the tag: (-want +got)\n%s", step.why, diff)
		}
		if len(step.installed) == 3 {
			uids = append(uids, w.serviceOfTag(t, name, step.namespace, step.target).UID)
		}
	}
	if uids[0] != uids[1] {
		t.Error("the Service was made anew instead of moved")
	}

	t.Log("to what does not exist")
	harness.Change(t, w, tag, func(tag *v1.IstioRevisionTag) { tag.Spec.TargetRef.Name = name + "-lost" })
	held := says(t, w, tag, v1.ConditionReconciled, v1.ReasonRefNotFound)
	if want := "until then the tag still points to IstioRevision " + name + "-a"; !strings.HasSuffix(held.Message, want) {
		t.Errorf("the tag says %q, want %q", held.Message, want)
	}
	w.injects(t, name, blue+"/istiod-"+name+"-a")
	neverWithout(t, webhooks)

	w.delete(t, tag)
	if left := w.installedFor(t, name); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// installedFor names what there is of a tag in the whole cluster, without the numbers of Helm's records.
func (w *world) installedFor(t testing.TB, tag string) []string {
	t.Helper()
	found, err := w.inventory(t.Context(), func(kind string, o client.Object) bool {
		return o.GetLabels()["istio.io/tag"] == tag || kind == "Secret" && o.GetLabels()["name"] == tag+"-revisiontag"
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range found {
		if strings.HasPrefix(name, "Secret ") {
			found[i] = name[:strings.LastIndex(name, ".v")]
		}
	}
	return slices.Compact(found)
}

// neverWithout checks that from the first webhook on there was always one: the new one comes before the old one goes.
func neverWithout(t testing.TB, webhooks *history.History[*admissionv1.MutatingWebhookConfiguration]) {
	t.Helper()
	present := map[string]bool{}
	for _, event := range webhooks.Events(t) {
		if event.Type == watch.Deleted {
			delete(present, event.Object.Name)
		} else {
			present[event.Object.Name] = true
		}
		if len(present) == 0 {
			t.Errorf("without %s, the tag had no webhook", event.Object.Name)
		}
	}
}

// serviceOfTag is the one that charts from 1.31 on make, which selects the pods of the revision that the tag leads to.
func (w *world) serviceOfTag(t testing.TB, tag, namespace, revision string) *corev1.Service {
	t.Helper()
	service := &corev1.Service{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "istiod-revision-tag-" + tag}, service); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"app": "istiod", "istio.io/rev": revision}, service.Spec.Selector); diff != "" {
		t.Errorf("the Service selects: (-want +got)\n%s", diff)
	}
	return service
}

package revision_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestRetarget(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, blue, green := shortName(t), w.namespace(t), w.namespace(t)
	revisions := map[string]*v1.IstioRevision{}
	for _, r := range []*v1.IstioRevision{
		makeRevision(name+"-a", blue, "v1.24.0"),
		makeRevision(name+"-b", blue, "v1.31.0"),
		makeRevision(name+"-c", green, "v1.31.1"),
	} {
		revisions[r.Name] = create(t, w, r)
	}
	for _, r := range revisions {
		ready(t, w, r)
	}
	tag := create(t, w, makeTag(name, v1.IstioRevisionKind, name+"-a"))
	webhooks := follow[*admissionv1.MutatingWebhookConfiguration](t, w, &admissionv1.MutatingWebhookConfigurationList{}, ofTag(name))

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
	for _, step := range []struct {
		why, target, namespace string
		installed              []string
	}{
		{"for the first time", name + "-a", blue, installed(blue, false)},
		{"in the same namespace", name + "-b", blue, installed(blue, true)},
		{"in another namespace", name + "-c", green, installed(green, true)},
		{"and back, to charts that make no Service", name + "-a", blue, installed(blue, false)},
	} {
		t.Log(step.why)
		change(t, w, tag, func(tag *v1.IstioRevisionTag) { tag.Spec.TargetRef.Name = step.target })
		w.points(t, tag, step.target)
		if tag.Status.IstiodNamespace != step.namespace {
			t.Errorf("%s: the tag points into namespace %s", step.why, tag.Status.IstiodNamespace)
		}
		w.injects(t, name, step.namespace+"/istiod-"+step.target)
		if diff := cmp.Diff(step.installed, w.installedFor(t, name)); diff != "" {
			t.Errorf("%s: installed for the tag: (-want +got)\n%s", step.why, diff)
		}
	}

	t.Log("to what does not exist")
	change(t, w, tag, func(tag *v1.IstioRevisionTag) { tag.Spec.TargetRef.Name = name + "-lost" })
	held := says(t, w, tag, v1.ConditionReconciled, v1.ReasonRefNotFound)
	if want := "until then the tag still points to IstioRevision " + name + "-a"; !strings.HasSuffix(held.Message, want) {
		t.Errorf("the tag says %q, want %q", held.Message, want)
	}
	w.injects(t, name, blue+"/istiod-"+name+"-a")
	neverWithout(t, webhooks)
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
func neverWithout(t testing.TB, webhooks *history[*admissionv1.MutatingWebhookConfiguration]) {
	t.Helper()
	present := map[string]bool{}
	for _, event := range webhooks.sofar() {
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

// Charts from 1.31 on make a Service for each tag.
func TestServiceOfTag(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, system := shortName(t), w.namespace(t)
	istio := create(t, w, revisionBased(name, system, "v1.31.0", 0))
	tag := create(t, w, makeTag(name+"-tag", v1.IstioKind, name))
	var uids []types.UID
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "istiod-revision-tag-" + tag.Name}}
	for _, version := range []string{"v1.31.0", "v1.31.1"} {
		change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Version = version })
		revision := name + "-" + strings.ReplaceAll(version, ".", "-")
		w.points(t, tag, revision)
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(service), service); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"app": "istiod", "istio.io/rev": revision}, service.Spec.Selector); diff != "" {
			t.Errorf("%s: the Service selects: (-want +got)\n%s", version, diff)
		}
		uids = append(uids, service.UID)
	}
	if uids[0] != uids[1] {
		t.Error("the Service was made anew instead of moved")
	}
	w.delete(t, tag)
	eventually(t, func(ctx context.Context) error { return w.isGone(ctx, service) })
	if left := w.installedFor(t, tag.Name); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

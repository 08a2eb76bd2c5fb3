package revision_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// What a tag refers to may come later, be unready for a while, go, and come back.
func TestTagReference(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, system := shortName(t), w.namespace(t)
	revision := name + "-v1-26-0"
	tags := map[string]*v1.IstioRevisionTag{
		"Istio " + name:             create(t, w, makeTag(name+"-floats", v1.IstioKind, name)),
		"IstioRevision " + revision: create(t, w, makeTag(name+"-stays", v1.IstioRevisionKind, revision)),
	}
	all := func(reason v1.Reason, message func(target string) string, webhook string) {
		t.Helper()
		for target, tag := range tags {
			want := message(target)
			until(t, w, tag, func(tag *v1.IstioRevisionTag) error {
				got := condition(tag, v1.ConditionReconciled)
				return asWanted(cmp.Diff([]string{string(reason), want}, []string{got.Reason, got.Message}))
			})
			if tag.Status.State != v1.State(reason) {
				t.Errorf("the state of tag %s is %s", tag.Name, tag.Status.State)
			}
			w.injects(t, tag.Name, webhook)
		}
	}
	notFound := func(meanwhile string) func(string) string {
		return func(target string) string {
			return target + ", which spec.targetRef names, does not exist; create it or change the reference; " + meanwhile
		}
	}
	pointAll := func() {
		t.Helper()
		for _, tag := range tags {
			w.points(t, tag, revision)
			if tag.Status.IstiodNamespace != system {
				t.Errorf("tag %s points into namespace %q", tag.Name, tag.Status.IstiodNamespace)
			}
			w.injects(t, tag.Name, system+"/istiod-"+revision)
		}
	}

	t.Log("there is nothing yet")
	all(v1.ReasonRefNotFound, notFound("until then the tag points nowhere"), "")

	t.Log("it comes, but is not ready")
	istio := revisionBased(name, system, "v1.26.0", 0)
	istio.Spec.Values = unready()
	create(t, w, istio)
	all(v1.ReasonIstiodNotReady, func(string) string {
		return "IstioRevision " + revision + " is not ready; until then the tag points nowhere"
	}, "")

	t.Log("it becomes ready")
	change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Values = nil })
	pointAll()

	t.Log("it is deleted under the tags")
	w.delete(t, istio)
	all(v1.ReasonRefNotFound, notFound(fmt.Sprintf(
		"until then the tag still points to IstioRevision %s, which is gone, and pods that use the tag are refused", revision)),
		system+"/istiod-"+revision)

	t.Log("it comes back")
	create(t, w, revisionBased(name, system, "v1.26.0", 0))
	pointAll()
}

// The namespace of a control plane may go, come back, and go for good.
func TestNamespaceGoesUnderATag(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, system := shortName(t), w.namespace(t)
	revision := name + "-v1-31-1"
	istio := create(t, w, revisionBased(name, system, "v1.31.1", 0))
	tag := create(t, w, makeTag(name, v1.IstioKind, name))
	w.points(t, tag, revision)

	namespace := func() *corev1.Namespace { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}} }
	w.delete(t, namespace())
	got := says(t, w, tag, v1.ConditionReconciled, v1.ReasonNamespaceNotFound)
	want := fmt.Sprintf("namespace %s of IstioRevision %s does not exist; create it, and the tag goes on", system, revision)
	if got.Message != want {
		t.Errorf("the tag says %q, want %q", got.Message, want)
	}
	says(t, w, istio, v1.ConditionReady, v1.ReasonNamespaceNotFound)

	create(t, w, namespace())
	ready(t, w, istio)
	w.points(t, tag, revision)
	if left := w.installedFor(t, name); len(left) != 3 {
		t.Errorf("installed for the tag are %q, want webhook, Service and record", left)
	}

	w.delete(t, namespace())
	w.delete(t, tag)
	w.delete(t, istio)
	w.nothingLeft(t, func(_ string, o client.Object) bool { return strings.Contains(o.GetName(), name) })
}

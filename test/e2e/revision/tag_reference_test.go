package revision_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
)

// What a tag refers to may come later, be unready for a while, go, and come back.
func TestTagReference(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, system := shortName(t), w.namespace(t)
	revision := name + "-v1-26-0"
	tags := map[string]*v1.IstioRevisionTag{
		"Istio " + name:             harness.Create(t, w, makeTag(name+"-floats", v1.IstioKind, name)),
		"IstioRevision " + revision: harness.Create(t, w, makeTag(name+"-stays", v1.IstioRevisionKind, revision)),
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
	harness.Create(t, w, istio)
	all(v1.ReasonIstiodNotReady, func(string) string {
		return "IstioRevision " + revision + " is not ready; until then the tag points nowhere"
	}, "")

	t.Log("it becomes ready")
	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Values = nil })
	pointAll()

	t.Log("it is deleted under the tags")
	w.delete(t, istio)
	all(v1.ReasonRefNotFound, notFound(fmt.Sprintf(
		"until then the tag still points to IstioRevision %s, which is gone, and pods that use the tag are refused", revision)),
		system+"/istiod-"+revision)

	t.Log("it comes back")
	harness.Create(t, w, revisionBased(name, system, "v1.26.0", 0))
	pointAll()
}

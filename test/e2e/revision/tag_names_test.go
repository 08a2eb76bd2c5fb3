package revision_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
)

// Of a tag and a revision of the same name, the one that came first has it until it is gone.
func TestTagAndRevisionOfTheSameName(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, system := shortName(t), w.namespace(t)
	holder := harness.Create(t, w, makeRevision(name, system, "v1.24.0"))
	target := harness.Create(t, w, makeRevision(name+"-target", system, "v1.26.0"))
	ready(t, w, holder)
	ready(t, w, target)

	t.Log("a tag wants the name of a revision")
	tag := harness.Create(t, w, makeTag(name, v1.IstioRevisionKind, target.Name))
	got := says(t, w, tag, v1.ConditionReconciled, v1.ReasonNameAlreadyExists)
	want := fmt.Sprintf("the name is already used by IstioRevision %s; the tag gets the name when IstioRevision %s is deleted, "+
		"or give the tag another name", name, name)
	if got.Status != metav1.ConditionFalse || got.Message != want {
		t.Errorf("the tag says %+v, want %q", got, want)
	}
	if tag.Status.State != v1.State(v1.ReasonNameAlreadyExists) || tag.Status.IstioRevision != "" {
		t.Errorf("the tag's status is %+v", tag.Status)
	}
	w.injects(t, name, "")
	if got := w.fairlead(t, "status", "istiorevisiontag", name, "-o", "wide"); got.code != 1 || !strings.Contains(got.stdout, want) {
		t.Errorf("status: %+v", got)
	}
	w.delete(t, holder)
	w.points(t, tag, target.Name)
	w.injects(t, name, system+"/istiod-"+target.Name)

	t.Log("a revision wants the name of the tag")
	istio := harness.Create(t, w, inPlace(name, system, "v1.24.0"))
	revision := makeRevision(name, "", "")
	got = says(t, w, revision, v1.ConditionReconciled, v1.ReasonNameAlreadyExists)
	want = fmt.Sprintf("the name is already used by IstioRevisionTag %s; delete the tag, or give the Istio or IstioRevision another name", name)
	if got.Status != metav1.ConditionFalse || got.Message != want {
		t.Errorf("the revision says %+v, want %q", got, want)
	}
	if revision.Status.State != v1.State(v1.ReasonNameAlreadyExists) {
		t.Errorf("the state is %s", revision.Status.State)
	}
	err := w.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "istiod-" + name}, &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a control plane was installed: %v", err)
	}
	w.injects(t, name, system+"/istiod-"+target.Name)
	got = says(t, w, istio, v1.ConditionReady, v1.ReasonNameAlreadyExists)
	if want := "IstioRevisionTag " + name; !strings.Contains(got.Message, want) {
		t.Errorf("the Istio does not name %s: %+v", want, got)
	}
	w.delete(t, tag)
	ready(t, w, istio)
}

package tag

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

var epoch = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func inShort(plan passage.Plan) []string {
	var lines []string
	if plan.Hold != nil {
		lines = append(lines, "hold "+string(plan.Hold.Code))
	}
	for _, s := range plan.Steps {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", s.State, s.Action, s.Object, s.Reason.Code))
	}
	return lines
}

func revisionNamed(name string, ready metav1.ConditionStatus) *v1.IstioRevision {
	return &v1.IstioRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(epoch.Add(-time.Hour))},
		Spec:       v1.IstioRevisionSpec{Version: "v1.24.0", Namespace: "istio-system"},
		Status: v1.IstioRevisionStatus{Conditions: []metav1.Condition{{
			Type: string(v1.ConditionReady), Status: ready, ObservedGeneration: 1,
		}}},
	}
}

// floating is a tag that follows an Istio, whose active revision is the target.
func floating(current string) Observed {
	o := Observed{
		Tag: &v1.IstioRevisionTag{
			ObjectMeta: metav1.ObjectMeta{Name: "prod", CreationTimestamp: metav1.NewTime(epoch)},
			Spec:       v1.IstioRevisionTagSpec{TargetRef: v1.TargetReference{Kind: v1.IstioKind, Name: "default"}},
			Status:     v1.IstioRevisionTagStatus{IstioRevision: current},
		},
		Istio: &v1.Istio{},
	}
	if current != "" {
		o.Current = revisionNamed(current, metav1.ConditionTrue)
	}
	return o
}

func (o Observed) with(change func(*Observed)) Observed { change(&o); return o }

func (o Observed) target(name string, ready metav1.ConditionStatus) Observed {
	o.Target = revisionNamed(name, ready)
	return o
}

// release is the tag's, as wanted for where it points, and as it is recorded.
func (o Observed) release(recorded string) Observed {
	to := o.pointsTo()
	if to == nil {
		return o
	}
	spec := func(revision string) *release.Spec {
		return &release.Spec{
			Name: "prod-revisiontag", Namespace: to.Spec.Namespace, Values: map[string]any{"revision": revision},
			Chart: &charts.Chart{Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "istiod", Version: "1"}}, Digest: "x"},
		}
	}
	o.Release = installer.Release{Name: "prod-revisiontag", Namespace: to.Spec.Namespace, Wanted: spec(to.Name)}
	if recorded != "" {
		o.Release.State = release.State{Exists: true, Status: "deployed", Fingerprint: spec(recorded).Fingerprint()}
	}
	return o
}

func TestPlan(t *testing.T) {
	sameNameRevision := func(age time.Duration) *v1.IstioRevision {
		r := revisionNamed("prod", metav1.ConditionTrue)
		r.CreationTimestamp = metav1.NewTime(epoch.Add(-age))
		return r
	}
	obsolete := []release.State{{Name: "prod-revisiontag", Namespace: "before", Exists: true}}
	cases := map[string]struct {
		in   Observed
		want []string
	}{
		"new, to a revision that is ready": {
			floating("").target("a", "True").release(""),
			[]string{"Pending install Release istio-system/prod-revisiontag NotInstalled"},
		},
		"new, to a revision that is not ready": {
			floating("").target("a", "False").release(""),
			[]string{"Running point IstioRevisionTag prod IstiodNotReady"},
		},
		"new, to an Istio without an active revision": {
			floating("").release(""),
			[]string{"Running point IstioRevisionTag prod IstiodNotReady"},
		},
		"there": {
			floating("a").target("a", "True").release("a"),
			nil,
		},
		"there, and the namespace is gone": {
			floating("a").target("a", "False").with(func(o *Observed) { o.MissingNamespace = "istio-system" }),
			[]string{"Running point IstioRevisionTag prod NamespaceNotFound"},
		},
		"there, and the revision is not ready for a moment": {
			floating("a").target("a", "False").release("a"),
			nil,
		},
		"moves when the new one is ready": {
			floating("a").target("b", "True").release("a"),
			[]string{"Pending upgrade Release istio-system/prod-revisiontag ReleaseDiffers"},
		},
		"stays until the new one is ready": {
			floating("a").target("b", "False").release("a"),
			[]string{"Running point IstioRevisionTag prod IstiodNotReady"},
		},
		"stays where it is while the reference leads nowhere": {
			floating("a").with(func(o *Observed) { o.Istio = nil }).release("a"),
			[]string{"Failed point IstioRevisionTag prod RefNotFound"},
		},
		"reference that leads nowhere": {
			floating("").with(func(o *Observed) { o.Istio = nil }),
			[]string{"Failed point IstioRevisionTag prod RefNotFound"},
		},
		"killed after it moved and before it said so": {
			floating("a").target("b", "True").release("b"),
			nil,
		},
		"into another namespace: first there, then not here": {
			floating("a").target("b", "True").release("").with(func(o *Observed) { o.ObsoleteReleases = obsolete }),
			[]string{
				"Pending install Release istio-system/prod-revisiontag NotInstalled",
				"Running uninstall Release before/prod-revisiontag ReleaseDiffers",
			},
		},
		"into another namespace: what is left behind goes": {
			floating("a").target("b", "True").release("b").with(func(o *Observed) { o.ObsoleteReleases = obsolete }),
			[]string{"Pending uninstall Release before/prod-revisiontag ReleaseDiffers"},
		},
		"the name belongs to an older revision": {
			floating("").target("a", "True").with(func(o *Observed) { o.SameNameRevision = sameNameRevision(time.Minute) }),
			[]string{"Failed point IstioRevisionTag prod NameAlreadyExists"},
		},
		"a younger revision of the same name is not our concern": {
			floating("a").target("a", "True").release("a").with(func(o *Observed) { o.SameNameRevision = sameNameRevision(-time.Minute) }),
			nil,
		},
		"what a tag without a name has left is in the way": {
			floating("a").target("a", "True").with(func(o *Observed) { o.SameNameRevision, o.ObsoleteReleases = sameNameRevision(time.Minute), obsolete }),
			[]string{
				"Failed point IstioRevisionTag prod NameAlreadyExists",
				"Pending uninstall Release before/prod-revisiontag NameAlreadyExists",
			},
		},
		"paused": {
			floating("a").target("b", "True").release("a").with(func(o *Observed) {
				o.Tag.Annotations = map[string]string{fairlead.AnnotationPaused: "true"}
			}),
			[]string{"hold Paused", "Pending upgrade Release istio-system/prod-revisiontag ReleaseDiffers"},
		},
		"being deleted": {
			floating("a").target("a", "True").with(func(o *Observed) {
				o.Tag.DeletionTimestamp, o.ObsoleteReleases = ptr.To(metav1.NewTime(epoch)), obsolete
			}),
			[]string{"Pending uninstall Release before/prod-revisiontag BeingDeleted"},
		},
		"gone": {
			floating("a").target("a", "True").with(func(o *Observed) { o.Tag.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }),
			nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, inShort(Plan(c.in))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		in                Observed
		state             v1.State
		revision          string
		reconciled, inUse string
	}{
		"points, and nobody uses it": {
			in:         floating("a").target("a", "True").release("a"),
			state:      "NotReferencedByAnything",
			revision:   "a",
			reconciled: "True Reconciled: the tag points to IstioRevision a",
			inUse:      "False NotReferencedByAnything: nothing refers to this name",
		},
		"healthy": {
			in: floating("a").target("a", "True").release("a").with(func(o *Observed) {
				o.Usage = usage.Usage{Pods: 1, Names: []string{"Pod shop/cart"}}
			}),
			state:      v1.StateHealthy,
			revision:   "a",
			reconciled: "True Reconciled: the tag points to IstioRevision a",
			inUse:      "True ReferencedByWorkloads: 1 pod: Pod shop/cart",
		},
		"waits for the new one": {
			in:       floating("a").target("b", "False").release("a"),
			state:    "IstiodNotReady",
			revision: "a",
			reconciled: "False IstiodNotReady: IstioRevision b is not ready; " +
				"until then the tag still points to IstioRevision a",
			inUse: "False NotReferencedByAnything: nothing refers to this name",
		},
		"nothing to refer to": {
			in:    floating("").with(func(o *Observed) { o.Istio = nil }),
			state: "RefNotFound",
			reconciled: "False RefNotFound: Istio default, which spec.targetRef names, does not exist; " +
				"create it or change the reference; until then the tag points nowhere",
			inUse: "False NotReferencedByAnything: nothing refers to this name",
		},
		"what it points to is gone": {
			in:       floating("a").with(func(o *Observed) { o.Istio, o.Current = nil, nil }),
			state:    "RefNotFound",
			revision: "a",
			reconciled: "False RefNotFound: Istio default, which spec.targetRef names, does not exist; " +
				"create it or change the reference; until then the tag still points to IstioRevision a, which is gone, " +
				"and pods that use the tag are refused",
			inUse: "False NotReferencedByAnything: nothing refers to this name",
		},
		"the namespace of what it points to is gone": {
			in:         floating("a").target("a", "False").with(func(o *Observed) { o.MissingNamespace = "istio-system" }),
			state:      "NamespaceNotFound",
			revision:   "a",
			reconciled: "False NamespaceNotFound: namespace istio-system of IstioRevision a does not exist; create it, and the tag is then installed",
			inUse:      "False NotReferencedByAnything: nothing refers to this name",
		},
		"the name is taken": {
			in: floating("").target("a", "True").with(func(o *Observed) {
				o.SameNameRevision = revisionNamed("prod", "True")
				o.SameNameUsage = usage.Usage{Namespaces: 1, Names: []string{"Namespace shop"}}
			}),
			state: "NameAlreadyExists",
			reconciled: "False NameAlreadyExists: the name is already used by IstioRevision prod (in use by 1 namespace: Namespace shop); " +
				"the tag gets the name when IstioRevision prod is deleted, or give the tag another name",
			inUse: "False NotReferencedByAnything: nothing refers to this name",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := statusOf(c.in, Plan(c.in), nil, epoch)
			var conditions []string
			for _, condition := range got.Conditions {
				conditions = append(conditions, fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message))
			}
			if diff := cmp.Diff([]string{c.reconciled, c.inUse}, conditions); diff != "" {
				t.Error(diff)
			}
			if got.State != c.state || got.IstioRevision != c.revision {
				t.Errorf("state %s, revision %s; want %s, %s", got.State, got.IstioRevision, c.state, c.revision)
			}
		})
	}
}

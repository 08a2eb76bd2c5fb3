package binding

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// observedKind is a binding of an object of a kind that a policy takes to cluster west, which has its Work.
func observedKind(t *testing.T, apiVersion, kind string, change func(*workv1alpha2.ResourceBindingSpec)) Observed {
	t.Helper()
	o := observed(t)
	o.Binding.Spec.Resource.APIVersion, o.Binding.Spec.Resource.Kind = apiVersion, kind
	o.Template, o.Works = adoptiontest.Object(t, kind+" "+apiVersion), map[string]*workv1alpha1.Work{}
	if change != nil {
		change(o.Binding.Spec)
	}
	for _, step := range Decide(o).Steps {
		o.Works[step.Object.Cluster] = step.Work
	}
	return o
}

// Objects whose deletion deletes more than themselves stay, unless the policy says otherwise in a field of its own.
func TestDeletionProtection(t *testing.T) {
	protection := func(p policyv1alpha1.DeletionProtection) func(*workv1alpha2.ResourceBindingSpec) {
		return func(s *workv1alpha2.ResourceBindingSpec) { s.DeletionProtection = p }
	}
	preserved := func(s *workv1alpha2.ResourceBindingSpec) { s.PreserveResourcesOnDeletion = ptr.To(true) }
	for name, c := range map[string]struct {
		apiVersion, kind string
		change           func(*workv1alpha2.ResourceBindingSpec)
		stays            bool
		// code is the reason when the template is deleted.
		code passage.Code
	}{
		"a Deployment":                    {"apps/v1", "Deployment", nil, false, ReasonReleased},
		"a Deployment, protected":         {"apps/v1", "Deployment", protection("Enabled"), false, ReasonReleased},
		"a Namespace":                     {"v1", "Namespace", nil, true, ReasonProtected},
		"a Namespace, protected":          {"v1", "Namespace", protection("Enabled"), true, ReasonProtected},
		"a Namespace, not protected":      {"v1", "Namespace", protection("Disabled"), false, ReasonReleased},
		"a Namespace, preserved":          {"v1", "Namespace", preserved, true, ReasonReleased},
		"a CustomResourceDefinition":      {"apiextensions.k8s.io/v1", "CustomResourceDefinition", nil, true, ReasonProtected},
		"a PersistentVolumeClaim":         {"v1", "PersistentVolumeClaim", nil, true, ReasonProtected},
		"a claim, not protected":          {"v1", "PersistentVolumeClaim", protection("Disabled"), false, ReasonReleased},
		"a Namespace of another group":    {"example.com/v1", "Namespace", nil, false, ReasonReleased},
		"a claim, preserved, unprotected": {"v1", "PersistentVolumeClaim", func(s *workv1alpha2.ResourceBindingSpec) { preserved(s); protection("Disabled")(s) }, true, ReasonReleased},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedKind(t, c.apiVersion, c.kind, c.change)
			if got := ptr.Deref(o.Works["west"].Spec.PreserveResourcesOnDeletion, false); got != c.stays {
				t.Errorf("the Work records %t", got)
			}
			unplaced := o
			unplaced.Binding = o.Binding.Copy()
			unplaced.Binding.Spec.Clusters = nil
			o.Template = nil
			o.Binding.SetDeletionTimestamp(&deletionTime)
			for when, o := range map[string]Observed{"deleted": o, "unplaced": unplaced} {
				step := Decide(o).Steps[0]
				if got := ptr.Deref(step.Work.Spec.PreserveResourcesOnDeletion, false); got != c.stays {
					t.Errorf("%s: stays: %t", when, got)
				}
				if (step.Reason.Code == ReasonProtected) != (c.code == ReasonProtected) ||
					strings.Contains(step.Reason.Message, "spec.deletionProtection") != (c.code == ReasonProtected) {
					t.Errorf("%s: %s", when, step.Reason)
				}
			}
		})
	}
}

// The policy tells once that an object stays, and the binding tells so before.
func TestDeletionProtectionIsReported(t *testing.T) {
	o := observedKind(t, "v1", "PersistentVolumeClaim", nil)
	status, _ := AggregateStatus(o.Binding, map[string]*workv1alpha1.Work{}, Source{}, deletionTime.Time)
	if message := status.Conditions[1].Message; !strings.Contains(message, "stays in clusters when the template is deleted, because spec.deletionProtection of the policy is not Disabled") {
		t.Error(message)
	}
	o.Template = nil
	o.Binding.SetFinalizers([]string{model.FinalizerBinding})
	o.Binding.SetDeletionTimestamp(&deletionTime)
	s := newStage(t, o)
	recorder := events.NewFakeRecorder(5)
	s.reconciler.recorder = recorder
	for range 2 {
		if err := s.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("%d events", len(recorder.Events))
	}
	want := corev1.EventTypeNormal + " DeletionProtected the template is deleted, and PersistentVolumeClaim shop/it stays: " +
		"to have it deleted in clusters, set spec.deletionProtection of the policy to Disabled before"
	if got := <-recorder.Events; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

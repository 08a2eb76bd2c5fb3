package binding

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

var deletionTime = metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))

// observed is a binding of a Deployment that a policy takes to cluster west, which has its Work.
func observed(t *testing.T) Observed {
	t.Helper()
	b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "it-deployment"})
	b.SetUID("b")
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "it"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
	model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
	o := Observed{Binding: b, Template: adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 5}"), Works: map[string]*workv1alpha1.Work{}}
	for _, step := range Decide(o).Steps {
		o.Works[step.Object.Cluster] = step.Work
	}
	return o
}

func deletionAnnotationsOf(work *workv1alpha1.Work) []string {
	return slices.DeleteFunc(slices.Clone(deletionAnnotations), func(key string) bool { return work.Annotations[key] != "true" })
}

func TestPlan(t *testing.T) {
	deleted := func(o *Observed) { o.Binding.SetDeletionTimestamp(&deletionTime) }
	annotated := func(key string) func(*Observed) {
		return func(o *Observed) {
			o.Binding.SetAnnotations(model.MergeKeys(o.Binding.GetAnnotations(), nil, map[string]string{key: "true"}))
		}
	}
	unplaced := func(o *Observed) { o.Binding.Spec.Clusters = nil }
	restored := func(o *Observed) { model.RestoreIn(o.Binding, workv1alpha2.TargetCluster{Name: "west"}) }
	// required has the Work only because another template required it.
	required := func(o *Observed) { o.Works["west"].Annotations[model.AnnotationClaim] = model.PolicyKey{}.String() }
	interrupted := func(o *Observed) { o.Works["west"].Annotations[model.AnnotationRestore] = "true" }
	unclaimed := func(o *Observed) { model.Claim(o.Binding, model.PolicyKey{}) }
	for name, c := range map[string]struct {
		change []func(*Observed)
		want   string
		// annotation and preserve are what becomes of the objects of deleted Works.
		annotation string
		preserve   bool
	}{
		"as it should be": {nil, "unchanged west", "", false},
		"one more cluster": {[]func(*Observed){func(o *Observed) {
			o.Binding.Spec.Clusters = append(o.Binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: "east"})
		}}, "unchanged west, create east Placed", "", false},
		"required in another cluster": {[]func(*Observed){func(o *Observed) {
			o.Binding.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "x", Clusters: []workv1alpha2.TargetCluster{{Name: "east"}}}}
		}}, "unchanged west, create east Required", "", false},
		"another cluster": {[]func(*Observed){func(o *Observed) {
			o.Binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
		}}, "create east Placed, wait west NotReplaced", "", false},
		"no cluster, preserved": {[]func(*Observed){func(o *Observed) {
			o.Binding.Spec.Clusters, o.Binding.Spec.PreserveResourcesOnDeletion = nil, ptr.To(true)
		}}, "delete west NotPlaced", "", true},
		"no cluster, taken by another policy": {[]func(*Observed){func(o *Observed) {
			o.Binding.Spec.Clusters = nil
			model.Claim(o.Binding, model.PolicyKey{Name: "other"})
		}}, "delete west NotPlaced", "", true},
		"the template changes":   {[]func(*Observed){func(o *Observed) { o.Template = adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 6}") }}, "update west Changed", "", false},
		"the resolution changes": {[]func(*Observed){func(o *Observed) { o.Binding.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }}, "update west Changed", "", false},
		"the policy is suspended": {[]func(*Observed){func(o *Observed) {
			o.Binding.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
		}}, "update west Changed", "", false},
		"suspended there": {[]func(*Observed){func(o *Observed) {
			o.Binding.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"west"}}}}
		}}, "update west Changed", "", false},
		"of an earlier version of the operator": {[]func(*Observed){func(o *Observed) { delete(o.Works["west"].Annotations, model.AnnotationTemplateVersion) }}, "unchanged west", "", false},
		"of an earlier version of the template": {[]func(*Observed){func(o *Observed) { o.Works["west"].Annotations[model.AnnotationTemplateVersion] = "earlier" }}, "update west Changed", "", false},
		"suspended elsewhere": {[]func(*Observed){func(o *Observed) {
			o.Binding.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"east"}}}}
		}}, "unchanged west", "", false},
		"the Work is deleted":                         {[]func(*Observed){func(o *Observed) { o.Works["west"].DeletionTimestamp = &deletionTime }}, "wait west Recreated", "", false},
		"the template is gone":                        {[]func(*Observed){func(o *Observed) { o.Template = nil }}, "", "", false},
		"no policy takes it":                          {[]func(*Observed){unclaimed}, "unchanged west", "", false},
		"deleted by hand":                             {[]func(*Observed){deleted}, "keep west Recreated", "", false},
		"deleted by hand, under another name":         {[]func(*Observed){deleted, func(o *Observed) { o.Binding.SetName("mine") }}, "delete west Released", "", true},
		"deleted by hand, when it was restored there": {[]func(*Observed){deleted, unplaced, restored}, "delete west Undone", model.AnnotationRestore, true},
		"unplaced, of an earlier binding":             {[]func(*Observed){unplaced, func(o *Observed) { o.Works["west"].Labels[model.LabelBinding] = "earlier" }}, "delete west NotPlaced", "", true},
		"of an earlier binding":                       {[]func(*Observed){func(o *Observed) { o.Works["west"].Labels[model.LabelBinding] = "earlier" }}, "update west Changed", "", false},
		"deleted, not taken":                          {[]func(*Observed){deleted, unclaimed}, "delete west Released", "", true},
		"deleted with its template":                   {[]func(*Observed){deleted, func(o *Observed) { o.Template = nil }}, "delete west Released", "", false},
		"deleted, preserved": {[]func(*Observed){deleted, func(o *Observed) {
			o.Template, o.Binding.Spec.PreserveResourcesOnDeletion = nil, ptr.To(true)
		}}, "delete west Released", "", true},
		"aborted":            {[]func(*Observed){deleted, annotated(model.AnnotationRestore)}, "delete west Undone", model.AnnotationRestore, false},
		"no longer required": {[]func(*Observed){deleted, annotated(model.AnnotationReleased)}, "delete west Released", "", true},
		"deleted with its template, and only required": {[]func(*Observed){required, deleted, func(o *Observed) { o.Template = nil }}, "delete west Released", "", true},
		"required, and released by its policy":         {[]func(*Observed){required, unplaced, unclaimed}, "delete west NotPlaced", "", true},
		"no longer required in a cluster":              {[]func(*Observed){required, unplaced}, "delete west NotPlaced", "", true},
		"the policy of what required it is aborted":    {[]func(*Observed){required, unplaced, restored}, "delete west Undone", model.AnnotationRestore, true},
		"the same, and deleted since":                  {[]func(*Observed){unplaced, restored, deleted, annotated(model.AnnotationReleased)}, "delete west Undone", model.AnnotationRestore, true},
		"placed again before it was restored":          {[]func(*Observed){interrupted}, "update west Changed", "", false},
		"deleted, when it was to be restored earlier":  {[]func(*Observed){interrupted, unplaced}, "delete west NotPlaced", "", false},
		"deleted, without Works":                       {[]func(*Observed){deleted, func(o *Observed) { o.Works = nil }}, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			for _, change := range c.change {
				change(&o)
			}
			d := Decide(o)
			var said []string
			for _, step := range d.Steps {
				said = append(said, strings.TrimSpace(string(step.Action)+" "+step.Object.Cluster+" "+string(step.Reason.Code)))
				if step.Action != model.ActionDelete {
					continue
				}
				work := step.Work
				if got := ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false); got != c.preserve || !slices.Equal(deletionAnnotationsOf(work), strings.Fields(c.annotation)) {
					t.Errorf("preserved: %t, annotations: %v", got, work.Annotations)
				}
			}
			if got := strings.Join(said, ", "); got != c.want || d.Err != nil {
				t.Errorf("got %q, %v, want %q", got, d.Err, c.want)
			}
		})
	}
}

// A Work names the policy that has placed it, not one that only happens to take what another template requires there.
func TestClaimOfWork(t *testing.T) {
	o := observed(t)
	o.Binding.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "x", Clusters: []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}}}
	claims := func() string {
		var all []string
		for _, step := range Decide(o).Steps {
			all = append(all, step.Object.Cluster+" "+step.Work.Annotations[model.AnnotationClaim])
		}
		return strings.Join(all, ", ")
	}
	if got := claims(); got != "west shop/p, east /" {
		t.Errorf("got %s", got)
	}
	if o.Binding.Spec.Clusters = nil; claims() != "east /, west shop/p" {
		t.Errorf("no longer placed, and still required: %s", claims())
	}
}

// Replicas are divided only where the placement says so, and all clusters get the rest of the template.
func TestPlanDividesReplicas(t *testing.T) {
	o := observed(t)
	o.Binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 3}}
	o.Binding.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaScheduling{ReplicaSchedulingType: policyv1alpha1.ReplicasDivided}}
	d := Decide(o)
	for i, want := range []string{`"replicas":2`, `"replicas":3`} {
		if text := string(d.Steps[i].Work.Spec.Workload.Manifests[0].Raw); !strings.Contains(text, want) {
			t.Errorf("%s gets %s, want %s", d.Steps[i].Object.Cluster, text, want)
		}
	}
}

// An annotation that is not understood is ignored, and reported.
func TestPlanWithAnUnknownResolution(t *testing.T) {
	o := observed(t)
	o.Template.SetAnnotations(map[string]string{"work.karmada.io/conflict-resolution": "perhaps"})
	if d := Decide(o); d.AnnotationErr == nil || !equalSpecs(d.Steps[0].Work.Spec, o.Works["west"].Spec) {
		t.Errorf("%v, %v", d.AnnotationErr, d.Steps)
	}
}

// Works are deleted in the order of their clusters, and each once.
func TestPlanOfDeletion(t *testing.T) {
	o := observed(t)
	for _, cluster := range []string{"north", "east"} {
		o.Works[cluster] = o.Works["west"].DeepCopy()
		o.Works[cluster].Namespace = model.ExecutionNamespace(cluster)
	}
	o.Works["north"].DeletionTimestamp = &deletionTime
	o.Binding.SetDeletionTimestamp(&deletionTime)
	o.Binding.SetAnnotations(model.MergeKeys(o.Binding.GetAnnotations(), nil, map[string]string{model.AnnotationRestore: "true"}))
	var got []string
	for _, step := range Decide(o).Steps {
		got = append(got, step.Object.Cluster+" "+step.Work.Annotations[model.AnnotationRestore])
	}
	if want := "east true,north true,west true"; strings.Join(got, ",") != want {
		t.Errorf("got %v", got)
	}
	if o.Works["west"].Annotations[model.AnnotationRestore] != "" {
		t.Error("the observed Work was changed")
	}
}

// A Job runs again for what its user changes, and not for a default that a newer API server of the hub has added to it.
func TestPlanWithNewDefaults(t *testing.T) {
	const before = "Job batch/v1\nspec: {backoffLimit: 6, template: {spec: {containers: [{name: it, image: it:v1}]}}}"
	owned := `{"f:spec":{"f:backoffLimit":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"it\"}":{".":{},"f:name":{},"f:image":{}}}}}%s}}`
	for name, c := range map[string]struct {
		template, owned string
		changes         bool
	}{
		"nothing":              {before, "", false},
		"a default":            {strings.Replace(before, "{backoff", "{podReplacementPolicy: Failed, backoff", 1), "", false},
		"a default inside":     {strings.Replace(before, "image:", "pullBack: Never, image:", 1), "", false},
		"a field of its user":  {strings.Replace(before, "{backoff", "{podReplacementPolicy: Failed, backoff", 1), `,"f:podReplacementPolicy":{}`, true},
		"a value of its user":  {strings.Replace(before, "it:v1", "it:v2", 1), "", true},
		"a field that is gone": {strings.Replace(before, "backoffLimit: 6, ", "", 1), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Binding.Spec.Resource.APIVersion, o.Binding.Spec.Resource.Kind = "batch/v1", "Job"
			o.Template, o.Works = adoptiontest.Object(t, before), map[string]*workv1alpha1.Work{}
			o.Works["west"] = Decide(o).Steps[0].Work
			o.Template = adoptiontest.Object(t, c.template)
			o.Template.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(owned, c.owned))}})
			d := Decide(o)
			if changes := !equalSpecs(d.Steps[0].Work.Spec, o.Works["west"].Spec); changes != c.changes || d.Err != nil {
				t.Errorf("the manifest changes: %t, %v", changes, d.Err)
			}
		})
	}
}

// A template whose managedFields cannot be read, of a kind with fields that clusters assign, is an error, and deletes nothing.
func TestPlanWithInvalidManagedFields(t *testing.T) {
	o := observed(t)
	o.Binding.Spec.Clusters = nil
	o.Template.SetKind("Service")
	o.Template.SetAPIVersion("v1")
	o.Template.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"k:{":{}}`)}})
	if d := Decide(o); d.Err == nil || len(d.Steps) > 0 {
		t.Errorf("%v, %v", d.Err, d.Steps)
	}
}

// A Work whose finalizer was removed gets it again, unless it is being deleted.
func TestFinalizerOfAWorkIsRestored(t *testing.T) {
	desired := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "it", Finalizers: []string{model.FinalizerExecution}}}
	if work := updatedWork(desired.DeepCopy(), desired); work != nil {
		t.Errorf("a Work with its finalizer is written: %v", work.Finalizers)
	}
	released := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "it", Finalizers: []string{"example.com/theirs"}}}
	if work := updatedWork(released, desired); work == nil || !slices.Equal(work.Finalizers, []string{"example.com/theirs", model.FinalizerExecution}) {
		t.Errorf("the Work becomes %v", work)
	}
	released.DeletionTimestamp = ptr.To(metav1.Now())
	if work := updatedWork(released, desired); work != nil {
		t.Errorf("a Work that is being deleted gets a finalizer: %v", work.Finalizers)
	}
}

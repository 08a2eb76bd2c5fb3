package forecast

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/template"
	"github.com/fairlead/fairlead/internal/passage"
)

func report(p *policy.Policy, is metav1.ConditionStatus, reason passage.Code) {
	p.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionReady, Status: is, Reason: string(reason)}}
}

// What `fairlead status` says of a policy, by the bindings of the hub.
func TestStatusOfPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*policy.Policy, *hubReader)
		want   string
	}{
		"applied": {nil, "apply Deployment shop/cart in west Done AppliedSuccessful"},
		"applied, and condition Ready of the policy is not updated yet": {
			func(p *policy.Policy, _ *hubReader) { report(p, metav1.ConditionUnknown, model.ReasonNothingMatched) },
			"report PropagationPolicy shop/p Running " + string(model.ReasonNothingMatched) + "; apply Deployment shop/cart in west Done AppliedSuccessful",
		},
		"no templates":     {func(_ *policy.Policy, h *hubReader) { h.templates, h.bindings = nil, nil }, ""},
		"not bound yet":    {func(_ *policy.Policy, h *hubReader) { h.bindings = nil }, "bind Deployment shop/cart Running Applying"},
		"a changed policy": {func(p *policy.Policy, _ *hubReader) { p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }, "bind Deployment shop/cart Running Applying"},
		"template deleted": {func(_ *policy.Policy, h *hubReader) { h.templates[0].SetDeletionTimestamp(&metav1.Time{Time: now}) }, "bind Deployment shop/cart Running Applying"},
		"template gone":    {func(_ *policy.Policy, h *hubReader) { h.templates = nil }, "bind Deployment shop/cart Running Applying"},
		"not selected":     {func(p *policy.Policy, _ *hubReader) { p.Spec.ResourceSelectors[0].Name = "pay" }, "bind Deployment shop/cart Running Applying"},
		"not selected, and released": {func(p *policy.Policy, h *hubReader) {
			p.Spec.ResourceSelectors[0].Name = "pay"
			h.bindings = nil
		}, ""},
		"selected in two versions": {func(p *policy.Policy, _ *hubReader) {
			p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta1", Kind: "Deployment"})
		}, "apply Deployment shop/cart in west Done AppliedSuccessful"},
		"template edited, and not looked at": {func(_ *policy.Policy, h *hubReader) {
			_ = unstructured.SetNestedField(h.templates[0].Object, int64(3), "spec", "replicas")
		}, "bind Deployment shop/cart Running Applying"},
		"status of the template": {func(_ *policy.Policy, h *hubReader) {
			_ = unstructured.SetNestedField(h.templates[0].Object, int64(3), "status", "replicas")
			h.templates[0].SetResourceVersion("9")
		}, "apply Deployment shop/cart in west Done AppliedSuccessful"},
		"one more template": {func(p *policy.Policy, h *hubReader) { p.Status.Matched = 0 },
			"report PropagationPolicy shop/p Running Applying; apply Deployment shop/cart in west Done AppliedSuccessful"},
		"another cluster":                      {func(_ *policy.Policy, h *hubReader) { h.bindings[0].Status.AggregatedStatus = nil }, "apply Deployment shop/cart in west Running Applying"},
		"refused":                              {func(_ *policy.Policy, h *hubReader) { h.fail("AppliedFailed") }, "apply Deployment shop/cart in west Failed FullyAppliedFailed"},
		"conflict":                             {func(_ *policy.Policy, h *hubReader) { h.fail("ResourceConflict") }, "apply Deployment shop/cart in west Failed ResourceConflict"},
		"cluster back":                         {func(_ *policy.Policy, h *hubReader) { h.fail("ClusterNotReachable") }, "apply Deployment shop/cart in west Running ClusterNotReachable"},
		"cluster down":                         {func(_ *policy.Policy, h *hubReader) { h.fail("AppliedFailed"); h.down = true }, "apply Deployment shop/cart in west Running ClusterNotReachable"},
		"applied, and cluster down":            {func(_ *policy.Policy, h *hubReader) { h.down = true }, "apply Deployment shop/cart in west Running ClusterNotReachable"},
		"applied, and cluster back, unchecked": {func(_ *policy.Policy, h *hubReader) { h.unchecked = true }, "apply Deployment shop/cart in west Running Checking"},
		"applied, and cluster edited":          {func(_ *policy.Policy, h *hubReader) { h.edited = true }, "apply Deployment shop/cart in west Running Checking"},
		"paused": {func(p *policy.Policy, h *hubReader) {
			p.Paused = true
			h.fail("DispatchingSuspended")
			h.bindings[0].Spec.Suspension = policy.SuspensionOf(p)
		}, "held: Paused; apply Deployment shop/cart in west Pending DispatchingSuspended"},
		"aborting": {func(p *policy.Policy, _ *hubReader) { p.Aborted = true }, "restore Deployment shop/cart Running Aborting"},
		"aborted": {func(p *policy.Policy, h *hubReader) {
			p.Aborted, h.bindings = true, nil
			report(p, metav1.ConditionFalse, model.ReasonAborted)
		}, "restore PropagationPolicy shop/p Done Aborted"},
		"kind not installed": {func(_ *policy.Policy, h *hubReader) { h.noKind = true }, "select PropagationPolicy shop/p Failed KindNotFollowed"},
		"invalid selector": {func(p *policy.Policy, h *hubReader) {
			p.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"no label": ""}}
			h.bindings = nil
		}, "select PropagationPolicy shop/p Failed InvalidSelector"},
		"invalid placement": {func(p *policy.Policy, _ *hubReader) {
			p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no label": ""}}}
		}, "bind PropagationPolicy shop/p Failed InvalidPlacement"},
		"an unsupported field": {func(p *policy.Policy, _ *hubReader) { p.Spec.Failover = &policyv1alpha1.FailoverBehavior{} }, "bind PropagationPolicy shop/p Failed UnsupportedField"},
		"a cluster that has not joined": {func(p *policy.Policy, h *hubReader) { h.placedBy(p, "west", "esat") },
			"bind PropagationPolicy shop/p Failed ClusterNotJoined; apply Deployment shop/cart in west Done AppliedSuccessful"},
		"a cluster that has just joined": {func(p *policy.Policy, h *hubReader) {
			h.placedBy(p, "west", "east")
			h.joined = append(h.joined, "east")
		}, "bind Deployment shop/cart Running Applying"},
		"a dependency": {func(p *policy.Policy, h *hubReader) { h.require(p) },
			"apply ConfigMap shop/settings in west Done AppliedSuccessful; apply Deployment shop/cart in west Done AppliedSuccessful"},
		"a dependency that was edited": {func(p *policy.Policy, h *hubReader) {
			h.require(p)
			_ = unstructured.SetNestedField(h.dependency.Object, "2", "data", "a")
		}, "bind ConfigMap shop/settings Running Applying; apply Deployment shop/cart in west Done AppliedSuccessful"},
		"a dependency that is gone": {func(p *policy.Policy, h *hubReader) {
			h.require(p)
			h.dependency = nil
		}, "bind ConfigMap shop/settings Running Applying; apply Deployment shop/cart in west Done AppliedSuccessful"},
		"a dependency that may not be read": {func(p *policy.Policy, h *hubReader) {
			h.require(p)
			h.forbidden = true
		}, "apply ConfigMap shop/settings in west Done AppliedSuccessful; apply Deployment shop/cart in west Done AppliedSuccessful"},
		"a dependency of another policy": {func(p *policy.Policy, h *hubReader) {
			p.Spec.PropagateDeps, h.bindings[0].Spec.PropagateDeps = true, true
			settings := template.NewDependency(model.Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, "u")
			h.add(template.WithDependents(settings, nil, model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "pay-deployment"})), &h.templates[0])
		}, "apply Deployment shop/cart in west Done AppliedSuccessful"},
	} {
		t.Run(name, func(t *testing.T) {
			p, h := appliedPolicy(t)
			if c.change != nil {
				c.change(p, h)
			}
			plan, err := Status(t.Context(), h, p)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if plan.Hold != nil {
				got = append(got, "held: "+string(plan.Hold.Code))
			}
			for _, s := range plan.Steps {
				got = append(got, fmt.Sprintf("%s %s %s %s", s.Action, s.Object, s.State, s.Reason.Code))
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got %s", strings.Join(got, "; "))
			}
		})
	}
}

// appliedPolicy has taken one Deployment to west, and says so.
func appliedPolicy(t *testing.T) (*policy.Policy, *hubReader) {
	t.Helper()
	p := &policy.Policy{Namespace: "shop", Name: "p", Status: &policyv1alpha1.PropagationStatus{Matched: 1}}
	report(p, metav1.ConditionTrue, model.ReasonAllApplied)
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	h := &hubReader{templates: []unstructured.Unstructured{*templateNamed("apps/v1", "Deployment", "cart")}}
	cart := model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
	b, err := template.DesiredBinding(cart, "u", p, []policy.Member{{Name: "west"}}, template.Content{Replicas: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.add(b, &h.templates[0])
	return p, h
}

func templateNamed(apiVersion, kind, name string) *unstructured.Unstructured {
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	template.SetNamespace("shop")
	template.SetName(name)
	return template
}

// hubReader is a hub with one cluster, and no other policies.
type hubReader struct {
	client.Reader
	templates []unstructured.Unstructured
	bindings  []workv1alpha2.ResourceBinding
	// dependency is one that Deployment cart requires.
	dependency                                 *unstructured.Unstructured
	down, unchecked, edited, noKind, forbidden bool
	// joined are the clusters besides west.
	joined []string
}

// placedBy has the policy ask for clusters by name, and the binding be written for that.
func (h *hubReader) placedBy(p *policy.Policy, names ...string) {
	p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: names}
	h.bindings[0].Spec.Placement = &p.Spec.Placement
}

// require has the Deployment require a ConfigMap, which the policy propagates.
func (h *hubReader) require(p *policy.Policy) {
	p.Spec.PropagateDeps, h.bindings[0].Spec.PropagateDeps, p.Status.Matched = true, true, 2
	h.dependency = templateNamed("v1", "ConfigMap", "settings")
	settings := template.NewDependency(model.TemplateOf(h.dependency), "u")
	h.add(template.WithDependents(settings, nil, model.AsBinding(&h.bindings[0])), h.dependency)
}

func (h *hubReader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	switch {
	case h.forbidden:
		return apierrors.NewForbidden(configMaps, key.Name, nil)
	case h.dependency == nil:
		return apierrors.NewNotFound(configMaps, key.Name)
	}
	h.dependency.DeepCopyInto(object.(*unstructured.Unstructured))
	return nil
}

// add adds a binding that is applied in cluster west, as its template is now.
func (h *hubReader) add(b *model.Binding, template *unstructured.Unstructured) {
	b.Status.TemplateVersion, _ = manifest.Version(template)
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "west", Applied: true}}
	h.bindings = append(h.bindings, *b.Object.(*workv1alpha2.ResourceBinding))
}

func (h *hubReader) fail(reason string) {
	h.bindings[0].Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "west", Reason: reason, AppliedMessage: "why"}}
}

func (h *hubReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *clusterv1alpha1.ClusterList:
		cluster := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
		if !h.down {
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
		}
		if h.edited {
			cluster.Generation = cluster.Status.ObservedGeneration + 1
		}
		if h.unchecked {
			cluster.Status.Conditions = append(cluster.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ConditionSynced, Status: metav1.ConditionFalse})
		}
		list.Items = append(list.Items, cluster)
		for _, name := range h.joined {
			list.Items = append(list.Items, clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	case *workv1alpha2.ResourceBindingList:
		list.Items = h.bindings
	case *unstructured.UnstructuredList:
		if h.noKind {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}
		}
		list.Items = h.templates
	}
	return nil
}

// Progress counts objects: neither the report of the policy, nor what is wrong with the policy itself.
func TestProgressCountsObjects(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*policy.Policy, *hubReader)
		want   string
	}{
		"not reported yet":     {func(p *policy.Policy, _ *hubReader) { report(p, metav1.ConditionUnknown, model.ReasonApplying) }, "InProgress: 1 of 1 done"},
		"a cluster is missing": {func(p *policy.Policy, h *hubReader) { h.placedBy(p, "west", "esat") }, "Failed: 1 of 1 done, PropagationPolicy shop/p failed"},
		"aborted": {func(p *policy.Policy, h *hubReader) {
			p.Aborted, h.bindings = true, nil
			report(p, metav1.ConditionFalse, model.ReasonAborted)
		}, "Completed: the policy is aborted, and takes no resources: remove annotation fairlead.dev/aborted to start again"},
	} {
		t.Run(name, func(t *testing.T) {
			p, h := appliedPolicy(t)
			c.change(p, h)
			plan, err := Status(t.Context(), h, p)
			if err != nil {
				t.Fatal(err)
			}
			view := passage.NewView(passage.Next(plan, passage.Batching{}, now), now)
			if got := fmt.Sprintf("%s: %s", view.State, view.Headline); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Commands also say that a policy selects more kinds than are followed.
func TestTooManyKinds(t *testing.T) {
	p := &policy.Policy{Namespace: "shop", Name: "p"}
	for i := range policy.MaxKinds + 1 {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: fmt.Sprintf("Boat%d", i)})
	}
	steps := selectorSteps(p)
	if len(steps) != 1 || steps[0].State != passage.Failed || steps[0].Reason.Code != model.ReasonInvalidSelector {
		t.Errorf("got %v", steps)
	}
}

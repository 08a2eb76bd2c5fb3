package forecast

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/binding"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/template"
	"github.com/fairlead/fairlead/internal/adoption/work"
	"github.com/fairlead/fairlead/internal/passage"
)

var now = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// hub is what both the operator and the command observe.
type hub struct {
	t         *testing.T
	policies  []*policy.Policy
	members   []policy.Member
	templates map[model.TemplateKey]*unstructured.Unstructured
	bindings  map[client.ObjectKey]*model.Binding
	works     map[client.ObjectKey]*workv1alpha1.Work
	// live are the objects of members, by cluster.
	live map[string]map[model.TemplateKey]*unstructured.Unstructured
}

func newHub(t *testing.T, members ...string) *hub {
	h := &hub{
		t: t, templates: map[model.TemplateKey]*unstructured.Unstructured{}, bindings: map[client.ObjectKey]*model.Binding{},
		works: map[client.ObjectKey]*workv1alpha1.Work{}, live: map[string]map[model.TemplateKey]*unstructured.Unstructured{},
	}
	for _, name := range members {
		h.members = append(h.members, policy.Member{Name: name})
		h.live[name] = map[model.TemplateKey]*unstructured.Unstructured{}
	}
	return h
}

// policy adds one for Deployments, with their dependencies.
func (h *hub) policy(name string, resolution policyv1alpha1.ConflictResolution) *policy.Policy {
	p := &policy.Policy{Namespace: "shop", Name: name, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}, ConflictResolution: resolution, PropagateDeps: true,
	}}
	h.policies = append(h.policies, p)
	return p
}

func (h *hub) template(name, text string) *unstructured.Unstructured {
	object := adoptiontest.Object(h.t, text)
	object.SetName(name)
	object.SetUID(types.UID(name))
	h.templates[model.KeyOf(object)] = object
	return object
}

// runs adds an unmanaged copy of an object to members.
func (h *hub) runs(object *unstructured.Unstructured, members ...string) {
	for _, m := range members {
		live := object.DeepCopy()
		live.SetLabels(nil)
		h.live[m][model.KeyOf(object)] = live
	}
}

// operator brings templates to bindings until nothing changes, as the template controller does, and decides about all Works.
func (h *hub) operator() map[string]passage.Action {
	for changed := true; changed; {
		changed = false
		write := func(b *model.Binding) {
			key := client.ObjectKeyFromObject(b.Object)
			if have := h.bindings[key]; have == nil || !equality.Semantic.DeepEqual(have.Object, b.Object) {
				h.bindings[key], changed = b, true
			}
		}
		for key, object := range h.templates {
			have := h.bindings[client.ObjectKey{Namespace: key.Namespace, Name: model.BindingName(key.Kind, key.Name)}]
			d := template.Decide(template.Observed{Template: model.TemplateOf(object), Exists: true, Policies: h.policies, Binding: have})
			if d.Action != model.ActionApply {
				continue
			}
			content, err := template.ContentOf(object, d.Policy)
			if err != nil {
				h.t.Fatal(err)
			}
			by, err := template.DesiredBinding(model.TemplateOf(object), object.GetUID(), d.Policy, h.members, content, have)
			if err != nil {
				h.t.Fatal(err)
			}
			write(by)
			for _, key := range manifest.Dependencies(object) {
				if h.templates[key] == nil || !by.Spec.PropagateDeps {
					continue
				}
				dependency := h.bindings[client.ObjectKey{Namespace: key.Namespace, Name: model.BindingName(key.Kind, key.Name)}]
				if dependency == nil {
					dependency = template.NewDependency(model.TemplateOf(h.templates[key]), h.templates[key].GetUID())
				}
				write(template.WithDependents(dependency, func(key client.ObjectKey) *model.Binding { return h.bindings[key] }, by))
			}
		}
	}
	var planned []plannedBinding
	for _, b := range h.bindings {
		planned = append(planned, plannedBinding{h.templates[model.TemplateKeyOf(b)], b})
	}
	return h.decide(planned)
}

// command plans the bindings of a policy as `fairlead plan` does, and decides about all Works.
func (h *hub) command(subject *policy.Policy) map[string]passage.Action {
	state := &hubState{policies: h.policies, members: h.members, bindings: h.bindings}
	planned, _, err := state.bindTemplates(slices.Collect(maps.Values(h.templates)), subject, func(key model.TemplateKey) (*unstructured.Unstructured, error) {
		return h.templates[key], nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.decide(planned)
}

// decide goes from bindings to Works, and from Works to objects.
func (h *hub) decide(planned []plannedBinding) map[string]passage.Action {
	clusters := map[string]*clusterv1alpha1.Cluster{}
	for name := range h.live {
		clusters[name] = &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}},
		}
	}
	look, all := &simulator{works: h.works, clusters: clusters}, map[string]passage.Action{}
	for _, p := range planned {
		d := binding.Decide(binding.Observed{Binding: p.binding, Template: p.template, Works: look.worksOf(p)})
		if d.Err != nil {
			h.t.Fatal(d.Err)
		}
		for _, step := range d.Steps {
			cluster := step.Object.Cluster
			if step.Deletion != nil {
				step = step.Deletion.Step
			}
			if step.Action == model.ActionDelete {
				all[objectIn(p.template, cluster).String()] = predictDeletion(p.template, step, clusters[cluster]).Action
				continue
			}
			object := work.Object{Manifest: &unstructured.Unstructured{}}
			if err := object.Manifest.UnmarshalJSON(step.Work.Spec.Workload.Manifests[0].Raw); err != nil {
				h.t.Fatal(err)
			}
			object.Live = h.live[cluster][model.KeyOf(object.Manifest)]
			done := work.Decide(work.Observed{Hub: "hub", Work: step.Work, Cluster: clusters[cluster], Connected: true}, object)
			action := done.Action
			if replicas := manifest.Replicas(object.Manifest); p.binding.Spec.Placement != nil && p.binding.Spec.Placement.Divides() && replicas >= 0 {
				action = passage.Action(fmt.Sprint(action, " with ", replicas))
			}
			all[done.Object.String()] = action
		}
	}
	return all
}

// settled writes the Works of all bindings, as if the operator had been at work before.
func (h *hub) settled() {
	h.operator()
	for _, b := range h.bindings {
		d := binding.Decide(binding.Observed{Binding: b, Template: h.templates[model.TemplateKeyOf(b)]})
		for _, step := range d.Steps {
			h.works[client.ObjectKeyFromObject(step.Work)] = step.Work
		}
	}
}

// What `fairlead plan` says is what the operator does.
func TestForecastAgreesWithOperator(t *testing.T) {
	const (
		pay      = "Deployment apps/v1\nspec: {replicas: 5, template: {spec: {containers: [{name: pay, image: pay:v1, envFrom: [{configMapRef: {name: settings}}]}]}}}"
		settings = "ConfigMap v1\ndata: {currency: EUR}"
		abort    = policyv1alpha1.ConflictAbort
		over     = policyv1alpha1.ConflictOverwrite
	)
	names := func(name string) *policyv1alpha1.ClusterAffinity {
		return &policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}
	}
	for name, c := range map[string]struct {
		setup func(*hub) *policy.Policy
		want  map[string]passage.Action
	}{
		"a dependency whose policy goes from Abort to Overwrite": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				h.runs(h.template("settings", settings), "west")
				p := h.policy("p", abort)
				h.settled()
				p.Spec.ConflictResolution = over
				return p
			},
			map[string]passage.Action{
				"Deployment shop/pay in east": model.ActionCreate, "Deployment shop/pay in west": model.ActionCreate,
				"ConfigMap shop/settings in east": model.ActionCreate, "ConfigMap shop/settings in west": model.ActionTakeOver,
			},
		},
		"a dependency whose policy goes from Overwrite to Abort": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				h.runs(h.template("settings", settings), "west")
				p := h.policy("p", over)
				h.settled()
				p.Spec.ConflictResolution = abort
				return p
			},
			map[string]passage.Action{
				"Deployment shop/pay in east": model.ActionCreate, "Deployment shop/pay in west": model.ActionCreate,
				"ConfigMap shop/settings in east": model.ActionCreate, "ConfigMap shop/settings in west": model.ActionLeave,
			},
		},
		"a dependency that another policy takes": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				h.runs(h.template("settings", settings), "east", "west")
				own := h.policy("settings", over)
				own.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
				own.Spec.Placement.ClusterAffinity = names("east")
				h.settled()
				return h.policy("p", abort)
			},
			map[string]passage.Action{
				"Deployment shop/pay in east": model.ActionCreate, "Deployment shop/pay in west": model.ActionCreate,
				"ConfigMap shop/settings in east": model.ActionTakeOver, "ConfigMap shop/settings in west": model.ActionTakeOver,
			},
		},
		"conflicts in two clusters": {
			func(h *hub) *policy.Policy {
				h.runs(h.template("pay", pay), "east", "west")
				return h.policy("p", abort)
			},
			map[string]passage.Action{"Deployment shop/pay in east": model.ActionLeave, "Deployment shop/pay in west": model.ActionLeave},
		},
		"an annotation of the template that overrides the policy": {
			func(h *hub) *policy.Policy {
				object := h.template("pay", pay)
				h.runs(object, "east", "west")
				object.SetAnnotations(map[string]string{policy.AnnotationConflictResolution: "overwrite"})
				return h.policy("p", abort)
			},
			map[string]passage.Action{"Deployment shop/pay in east": model.ActionTakeOver, "Deployment shop/pay in west": model.ActionTakeOver},
		},
		"a placement that no longer selects a cluster": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				p := h.policy("p", abort)
				h.settled()
				p.Spec.Placement.ClusterAffinity = names("east")
				return p
			},
			map[string]passage.Action{"Deployment shop/pay in east": model.ActionCreate, "Deployment shop/pay in west": model.ActionDelete},
		},
		"a placement that no longer selects a cluster, resources preserved": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				p := h.policy("p", abort)
				h.settled()
				p.Spec.Placement.ClusterAffinity, p.Spec.PreserveResourcesOnDeletion = names("east"), ptr.To(true)
				return p
			},
			map[string]passage.Action{"Deployment shop/pay in east": model.ActionCreate, "Deployment shop/pay in west": model.ActionOrphan},
		},
		"divided replicas": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				p := h.policy("p", abort)
				p.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaScheduling{ReplicaSchedulingType: policyv1alpha1.ReplicasDivided}
				return p
			},
			map[string]passage.Action{"Deployment shop/pay in east": "create with 3", "Deployment shop/pay in west": "create with 2"},
		},
		"a Lazy policy that has changed, and not the template": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				p := h.policy("p", abort)
				p.Spec.ActivationPreference, p.Spec.Placement.ClusterAffinity = policyv1alpha1.ActivationLazy, names("east")
				h.settled()
				p.Spec.Placement.ClusterAffinity = names("west")
				return p
			},
			map[string]passage.Action{"Deployment shop/pay in east": model.ActionCreate},
		},
		"a Lazy policy that has changed, and the template": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				p := h.policy("p", abort)
				p.Spec.ActivationPreference, p.Spec.Placement.ClusterAffinity = policyv1alpha1.ActivationLazy, names("east")
				h.settled()
				p.Spec.Placement.ClusterAffinity = names("west")
				h.template("pay", strings.Replace(pay, "pay:v1", "pay:v2", 1))
				return p
			},
			map[string]passage.Action{"Deployment shop/pay in east": model.ActionDelete, "Deployment shop/pay in west": model.ActionCreate},
		},
		"a Lazy policy that no longer brings dependencies": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				h.template("settings", settings)
				p := h.policy("p", abort)
				p.Spec.ActivationPreference, p.Spec.Placement.ClusterAffinity = policyv1alpha1.ActivationLazy, names("east")
				h.settled()
				p.Spec.PropagateDeps = false
				return p
			},
			map[string]passage.Action{"Deployment shop/pay in east": model.ActionCreate, "ConfigMap shop/settings in east": model.ActionCreate},
		},
		"a Lazy policy over a template that was there before": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay).SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
				p := h.policy("p", abort)
				p.Spec.ActivationPreference, p.ChangedAt = policyv1alpha1.ActivationLazy, now
				return p
			},
			map[string]passage.Action{},
		},
		"a template that another policy keeps": {
			func(h *hub) *policy.Policy {
				h.template("pay", pay)
				h.policy("first", abort).Spec.Placement.ClusterAffinity = names("nowhere")
				h.settled()
				p := h.policy("p", abort)
				p.Spec.Priority = ptr.To[int32](9)
				return p
			},
			map[string]passage.Action{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, "east", "west")
			subject := c.setup(h)
			said := h.command(subject)
			if diff := cmp.Diff(c.want, said); diff != "" {
				t.Errorf("the command (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(said, h.operator()); diff != "" {
				t.Errorf("the operator does something else (-command +operator):\n%s", diff)
			}
		})
	}
}

// Every conflict is one for `fairlead status`, not only the first, which the condition of the binding quotes.
func TestStatusAgreesWithBinding(t *testing.T) {
	refused := passage.Because(model.ReasonFailed, "admission webhook denied the request")
	conflict := func(cluster string) passage.Reason {
		return passage.Because(model.ReasonConflict, "Deployment shop/cart exists in cluster %s already", cluster)
	}
	suspended := func(cluster string) passage.Reason {
		return passage.Because(model.ReasonSuspended, "cluster %s is suspended", cluster)
	}
	for name, c := range map[string]struct {
		// west and east are why a cluster has not applied its Work, nil if it has.
		east, west *passage.Reason
		whole      passage.Code
		states     string
	}{
		"both applied":              {nil, nil, model.ReasonFullyApplied, "east Done AppliedSuccessful, west Done AppliedSuccessful"},
		"both in conflict":          {ptr.To(conflict("east")), ptr.To(conflict("west")), model.ReasonConflict, "east Failed ResourceConflict, west Failed ResourceConflict"},
		"the second in conflict":    {nil, ptr.To(conflict("west")), model.ReasonConflict, "east Done AppliedSuccessful, west Failed ResourceConflict"},
		"a conflict and a refusal":  {ptr.To(conflict("east")), &refused, model.ReasonConflict, "east Failed ResourceConflict, west Failed FullyAppliedFailed"},
		"a refusal and a conflict":  {&refused, ptr.To(conflict("west")), model.ReasonNotApplied, "east Failed FullyAppliedFailed, west Failed ResourceConflict"},
		"one suspended, one not":    {ptr.To(suspended("east")), nil, model.ReasonSuspended, "east Pending DispatchingSuspended, west Done AppliedSuccessful"},
		"one suspended, one denied": {ptr.To(suspended("east")), &refused, model.ReasonSuspended, "east Pending DispatchingSuspended, west Failed FullyAppliedFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}
			works := map[string]*workv1alpha1.Work{}
			for cluster, why := range map[string]*passage.Reason{"east": c.east, "west": c.west} {
				w := &workv1alpha1.Work{}
				if w.Status = work.AppliedStatus(w, cluster, nil, now); why != nil {
					w.Status = work.WithApplied(w, metav1.ConditionFalse, *why, now)
				}
				works[cluster] = w
			}
			status, _ := binding.AggregateStatus(b, works, binding.Source{}, now)
			*b.Status = status
			if condition := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionFullyApplied); condition.Reason != string(c.whole) {
				t.Errorf("the binding is %s: %s", condition.Reason, condition.Message)
			}
			var got []string
			for _, s := range stepsOf(model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}, "", b, nil, false) {
				got = append(got, fmt.Sprintf("%s %s %s", s.Object.Cluster, s.State, s.Reason.Code))
			}
			if diff := cmp.Diff(c.states, strings.Join(got, ", ")); diff != "" {
				text, _ := json.Marshal(status)
				t.Errorf("%s\n%s", diff, text)
			}
		})
	}
}

// A resource that a policy selects in two versions is planned once: in the version that it is bound in, or in that of the first
// selector.
func TestResourceInTwoVersionsIsPlannedOnce(t *testing.T) {
	for _, bound := range []string{"", "apps/v1", "apps/v1beta1"} {
		t.Run("bound in "+bound, func(t *testing.T) {
			h := newHub(t, "west")
			p := h.policy("p", policyv1alpha1.ConflictAbort)
			p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta1", Kind: "Deployment"})
			h.template("cart", "Deployment apps/v1\nspec: {replicas: 1}")
			h.template("cart", "Deployment apps/v1beta1\nspec: {replicas: 1}")
			want := "apps/v1"
			if bound != "" {
				want = bound
				for _, object := range h.templates {
					if object.GetAPIVersion() != bound {
						continue
					}
					b, err := template.DesiredBinding(model.TemplateOf(object), "u", p, h.members, template.Content{Replicas: -1}, nil)
					if err != nil {
						t.Fatal(err)
					}
					h.bindings[client.ObjectKeyFromObject(b.Object)] = b
				}
			}
			state := &hubState{policies: h.policies, members: h.members, bindings: h.bindings}
			planned, elsewhere, err := state.bindTemplates(slices.Collect(maps.Values(h.templates)), p, nil)
			if err != nil || len(planned) != 1 || planned[0].template.GetAPIVersion() != want || len(elsewhere) > 0 {
				t.Errorf("%v, %v, %v", planned, elsewhere, err)
			}
		})
	}
}

// A template whose binding Karmada has made is planned with that binding and its Works; one whose name another template's binding has
// gets another name, and none of those Works.
func TestForecastOfInheritedBindings(t *testing.T) {
	const route, deployment = "VirtualService networking.istio.io/v1", "Deployment apps/v1\nspec: {replicas: 1}"
	for name, c := range map[string]struct {
		template, inherited, of string
		want                    string
		works                   int
	}{
		"of the template":    {route, "it-virtualservice", route, "it-virtualservice", 1},
		"of a role's":        {"Role rbac.authorization.k8s.io/v1", "it.reader-role", "Role rbac.authorization.k8s.io/v1", "it.reader-role", 1},
		"of another's":       {deployment, "it-deployment", "Deployment example.com/v1", "it-deployment-" + model.Digest("apps", "Deployment", "it"), 0},
		"of another version": {deployment, "it-odd", "Deployment apps/v1beta1", "it-odd", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, "west")
			object, of := h.template("it", c.template), adoptiontest.Object(t, c.of)
			p := h.policy("p", policyv1alpha1.ConflictAbort)
			p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: object.GetAPIVersion(), Kind: object.GetKind()}}
			b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: c.inherited})
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Namespace: "shop", Name: "it"}
			h.bindings[client.ObjectKeyFromObject(b.Object)] = b
			state := &hubState{policies: h.policies, members: h.members, bindings: h.bindings}
			planned, _, err := state.bindTemplates([]*unstructured.Unstructured{object}, p, nil)
			if err != nil || len(planned) != 1 || planned[0].binding.GetName() != c.want {
				t.Fatalf("%v, %v", planned, err)
			}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: model.ExecutionNamespace("west"), Name: "it-5d6c7b8a9f"}}
			s := &simulator{
				clusters: map[string]*clusterv1alpha1.Cluster{"west": {}},
				bound:    map[client.ObjectKey]*workv1alpha1.Work{{Namespace: work.Namespace, Name: "shop/" + c.inherited}: work},
			}
			if works := s.worksOf(planned[0]); len(works) != c.works {
				t.Errorf("Works: %v", works)
			}
		})
	}
}

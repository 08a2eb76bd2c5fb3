package takeover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

const cart = "Deployment apps/v1\nmetadata: {labels: {app: cart}}\nspec: {template: {spec: {containers: [{name: cart, envFrom: [{configMapRef: {name: it}}]}]}}}"

// stage is a hub, and a cluster that has joined as west.
type stage struct{ hub, west *adoptiontest.API }

// newStage has a Deployment in the cluster, with the ConfigMap that it requires, and a Service.
func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{
		hub:  adoptiontest.NewAPI(t, nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "hub"}}),
		west: adoptiontest.NewAPI(t, nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pay"}}, adoptiontest.Object(t, cart), adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}"), adoptiontest.Object(t, "Service v1")),
	}
}

// takeover is of the Deployments of a namespace.
func takeover(changes ...func(*Takeover)) Takeover {
	a := Takeover{
		Cluster: "west", Namespace: "shop", Kinds: []string{"deployments"}, Selector: labels.Everything(), Policy: "adopted-west",
		KindNamed: func(mapper meta.RESTMapper, name string) (*meta.RESTMapping, error) {
			kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: name})
			if err != nil {
				return nil, err
			}
			return mapper.RESTMapping(kind.GroupKind(), kind.Version)
		},
	}
	for _, change := range changes {
		change(&a)
	}
	return a
}

func kinds(names ...string) func(*Takeover) { return func(a *Takeover) { a.Kinds = names } }

// named are pairs of a kind and a name.
func named(names ...string) func(*Takeover) {
	return func(a *Takeover) {
		for i := 0; i < len(names); i += 2 {
			a.Named = append(a.Named, Name{names[i], names[i+1]})
		}
	}
}

func withDependencies(a *Takeover) { a.WithDependencies = true }

func (s *stage) tryDraft(t *testing.T, a Takeover) (Draft, error) {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, meta.RESTScopeRoot)
	return a.draftFrom(t.Context(), s.hub, &member.Client{Name: "west", API: s.west}, mapper)
}

func (s *stage) draft(t *testing.T, changes ...func(*Takeover)) Draft {
	t.Helper()
	d, err := s.tryDraft(t, takeover(changes...))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *stage) write(t *testing.T, d Draft) (Copied, error) {
	t.Helper()
	return d.Write(t.Context(), s.hub, func(int) {})
}

// policy is the one that the hub has, nil if it has none.
func (s *stage) policy(t *testing.T) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "adopted-west"}}
	if !s.hub.Exists(t, p) {
		return nil
	}
	return p
}

// create creates an object on the hub, as another client does.
func (s *stage) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := s.hub.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// failing fails some requests: "get Deployment it", or "create Service it".
func failing(err error, requests ...string) func(string, client.Object) error {
	return func(verb string, object client.Object) error {
		if slices.Contains(requests, adoptiontest.Describe(verb, object)) {
			return err
		}
		return nil
	}
}

func listFailing(err error, kind string) func(string, string) error {
	return func(listed, _ string) error {
		if listed == kind {
			return err
		}
		return nil
	}
}

func namesOf(objects []*unstructured.Unstructured) string {
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+model.NameOf(o))
	}
	return strings.Join(names, ", ")
}

// A takeover finds each object once, and only what is asked for.
func TestDraftSelects(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Takeover)
		want   string
	}{
		"a kind":                    {func(*Takeover) {}, "Deployment shop/it"},
		"a kind twice":              {kinds("deployments", "deployment"), "Deployment shop/it"},
		"two kinds, in their order": {kinds("services", "deployments"), "Service shop/it, Deployment shop/it"},
		"with dependencies":         {withDependencies, "Deployment shop/it, ConfigMap shop/it"},
		"with a dependency that is selected itself": {func(a *Takeover) { a.WithDependencies, a.Kinds = true, []string{"configmaps", "deployments"} }, "ConfigMap shop/it, Deployment shop/it"},
		"by label": {func(a *Takeover) {
			a.Selector, a.Kinds = labels.SelectorFromSet(labels.Set{"app": "cart"}), []string{"services", "deployments"}
		}, "Deployment shop/it"},
		"another namespace":              {func(a *Takeover) { a.Namespace = "pay" }, ""},
		"by name":                        {named("services", "it"), "Service shop/it"},
		"by name, in their order":        {named("services", "it", "deployment", "it", "service", "it"), "Service shop/it, Deployment shop/it"},
		"by name, with its dependencies": {func(a *Takeover) { named("deployments", "it")(a); withDependencies(a) }, "Deployment shop/it, ConfigMap shop/it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			d := s.draft(t, c.change)
			if got := namesOf(d.Templates); got != c.want {
				t.Errorf("got %s", got)
			}
			if (len(d.Policies) == 1) != (c.want != "") || d.Complete() || d.NewNamespace != (c.want != "") {
				t.Errorf("policies %v, complete %t, new namespace %t", d.Policies, d.Complete(), d.NewNamespace)
			}
			if len(s.hub.Writes)+len(s.west.Writes) > 0 {
				t.Errorf("a draft has written %v, %v", s.hub.Writes, s.west.Writes)
			}
		})
	}
}

// Cluster-scoped resources are adopted by name, with a policy of their own, and need no namespace on the hub.
func TestDraftOfNamedClusterScoped(t *testing.T) {
	s := newStage(t)
	class := adoptiontest.Object(t, "PriorityClass scheduling.k8s.io/v1\nvalue: 7")
	class.SetNamespace("")
	if err := s.west.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	check := func(d Draft, policies string, written []string) {
		t.Helper()
		var names []string
		for _, p := range d.Policies {
			names = append(names, p.String())
		}
		if got := strings.Join(names, ", "); got != policies {
			t.Errorf("got %s", got)
		}
		s.hub.Writes = nil
		if _, err := s.write(t, d); err != nil || !slices.Equal(s.hub.Writes, written) {
			t.Errorf("got %v, %v", s.hub.Writes, err)
		}
	}
	only := s.draft(t, named("priorityclasses", "it"))
	objects, err := only.Objects()
	if err != nil || namesOf(objects) != "PriorityClass it, ClusterPropagationPolicy adopted-west" {
		t.Errorf("got %s, %v", namesOf(objects), err)
	}
	if _, found := objects[1].Object["metadata"].(map[string]any)["namespace"]; found {
		t.Errorf("got %v", objects[1].Object["metadata"])
	}
	check(only, "ClusterPropagationPolicy adopted-west", []string{"create PriorityClass it", "create ClusterPropagationPolicy adopted-west"})
	both := s.draft(t, named("priorityclasses", "it", "services", "it"))
	check(both, "PropagationPolicy shop/adopted-west, ClusterPropagationPolicy adopted-west",
		[]string{"create Namespace shop", "create Service it", "create PropagationPolicy adopted-west"})
	if again := s.draft(t, named("priorityclasses", "it", "services", "it")); !again.Complete() || again.NewNamespace || len(again.Present) != 2 {
		t.Errorf("once more: %+v", again)
	}
}

func TestDraftFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
	policyOf := func(cluster string) client.Object {
		return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "adopted-west", Labels: map[string]string{LabelAdoptedFrom: cluster}}}
	}
	missing := func(kind string) error {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}, SearchedVersions: []string{"v1"}}
	}
	hub := func(request string, err error) func(*stage) {
		return func(s *stage) { s.hub.On = failing(err, request) }
	}
	for name, c := range map[string]struct {
		change func(*Takeover)
		have   client.Object
		fails  func(*stage)
		want   string
	}{
		"a kind that the cluster has not":  {change: kinds("wheels"), want: `cluster west has no kind "wheels": `},
		"a kind in no namespace":           {change: kinds("namespaces"), want: "namespaces are cluster-scoped, and adopted by name only: name them, such as `fairlead adopt namespaces NAME --cluster west`"},
		"a name that the cluster has not":  {change: named("deployments", "cart"), want: "Deployment shop/cart does not exist in cluster west"},
		"a name in no namespace":           {change: named("namespaces", "cart"), want: "Namespace cart does not exist in cluster west"},
		"a named kind that is none":        {change: named("wheels", "it"), want: `cluster west has no kind "wheels": `},
		"a name that may not be read":      {change: named("deployments", "it"), fails: func(s *stage) { s.west.On = failing(forbidden, "get Deployment it") }, want: "get Deployment shop/it in cluster west: "},
		"a kind that the hub has not":      {fails: func(s *stage) { s.hub.OnList = listFailing(missing("Deployment"), "Deployment") }, want: "the hub has no kind Deployment in apps/v1: install its CRD on the hub, or name other kinds with --kind"},
		"a hub without CRDs":               {fails: hub("get PropagationPolicy adopted-west", missing("PropagationPolicy")), want: "the hub has no PropagationPolicies: install its CRDs with `fairlead crds install`"},
		"a policy of a user":               {have: policyOf(""), want: "PropagationPolicy shop/adopted-west exists already, and was not created for resources adopted from cluster west: give another name with --policy"},
		"a policy for another cluster":     {have: policyOf("east"), want: "PropagationPolicy shop/adopted-west exists already"},
		"the hub has no ID to read":        {fails: hub("get Namespace kube-system", forbidden), want: "get the ID of the hub: "},
		"the hub does not let it list":     {fails: func(s *stage) { s.hub.OnList = listFailing(forbidden, "Deployment") }, want: "list Deployment on the hub: "},
		"the policy may not be read":       {fails: hub("get PropagationPolicy adopted-west", forbidden), want: "get PropagationPolicy shop/adopted-west: "},
		"the namespace may not be read":    {fails: hub("get Namespace shop", forbidden), want: "forbidden"},
		"the cluster does not let it list": {fails: func(s *stage) { s.west.OnList = listFailing(forbidden, "Deployment") }, want: "list deployments in cluster west: "},
		"a dependency may not be read":     {change: withDependencies, fails: func(s *stage) { s.west.On = failing(forbidden, "get ConfigMap it") }, want: "get ConfigMap shop/it in cluster west: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			if c.have != nil {
				s.create(t, c.have)
			}
			if c.fails != nil {
				c.fails(s)
			}
			a := takeover()
			if c.change != nil {
				c.change(&a)
			}
			d, err := s.tryDraft(t, a)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(c.want, "forbidden") && len(d.Templates) > 0 {
				t.Errorf("%d templates, %v", len(d.Templates), err)
			}
		})
	}
	if _, err := takeover().Draft(t.Context(), newStage(t).hub); err == nil || !strings.HasPrefix(err.Error(), "no cluster west has joined the hub: ") {
		t.Errorf("of a cluster that has not joined: %v", err)
	}
}

// Interrupted at any write, a takeover is completed by running the command again, and then there is nothing left to do. The policy
// comes last: before it nothing happens in the cluster.
func TestWriteInterruptedAtEveryWrite(t *testing.T) {
	const writes = 4
	for kill := range writes + 1 {
		s := newStage(t)
		d := s.draft(t, withDependencies)
		// Templates are created side by side.
		var mu sync.Mutex
		var done []string
		s.hub.On = func(verb string, object client.Object) error {
			mu.Lock()
			defer mu.Unlock()
			if len(done) >= kill {
				return errors.New("killed")
			}
			done = append(done, adoptiontest.Describe(verb, object))
			return nil
		}
		_, err := s.write(t, d)
		if (err == nil) != (kill == writes) {
			t.Errorf("killed at write %d: %v", kill, err)
		}
		if kill == writes && (len(done) != writes || done[0] != "create Namespace shop" || done[writes-1] != "create PropagationPolicy adopted-west") {
			t.Errorf("undisturbed: %v", done)
		}
		s.hub.On = nil
		if d = s.draft(t, withDependencies); !d.Complete() {
			if _, err := s.write(t, d); err != nil {
				t.Errorf("killed at write %d, and again: %v", kill, err)
			}
		}
		if d = s.draft(t, withDependencies); !d.Complete() || len(d.Present) != 2 || len(d.Skipped) > 0 || d.NewNamespace {
			t.Errorf("killed at write %d, it leaves %s, %v", kill, namesOf(d.Templates), d.Skipped)
		}
		if p := s.policy(t); p == nil || len(p.Spec.ResourceSelectors) != 2 {
			t.Errorf("killed at write %d, the policy is %v", kill, p)
		}
	}
}

// What the hub does with a template decides what is counted, and whether there is a policy.
func TestWrite(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "it", nil)
	for name, c := range map[string]struct {
		// meanwhile is what another client creates after the draft.
		meanwhile client.Object
		refuses   []string
		copied    Copied
		refused   []string
		policy    bool
		want      string
	}{
		"accepted": {copied: Copied{Written: 2}, policy: true},
		"another client has created one meanwhile": {
			meanwhile: adoptiontest.Object(t, "Service v1"), copied: Copied{Written: 1, Overtaken: 1}, policy: true,
		},
		"another client has created the namespace meanwhile": {
			meanwhile: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, copied: Copied{Written: 2}, policy: true,
		},
		"another client has created the policy meanwhile": {
			meanwhile: &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "adopted-west"}},
			copied:    Copied{Written: 2}, policy: true, want: "the templates are on the hub: run the command again",
		},
		"one is refused": {
			refuses: []string{"create Deployment it"}, copied: Copied{Written: 1}, refused: []string{"Deployment shop/it"}, policy: true,
		},
		"all are refused": {
			refuses: []string{"create Deployment it", "create Service it"}, refused: []string{"Deployment shop/it", "Service shop/it"},
			want: "the hub accepted none of the templates, so there is nothing for the policy to take",
		},
		"the namespace is refused": {refuses: []string{"create Namespace shop"}, want: "create namespace shop on the hub: "},
		"the policy is refused": {
			refuses: []string{"create PropagationPolicy adopted-west"}, copied: Copied{Written: 2}, want: "the templates are on the hub: run the command again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			d := s.draft(t, kinds("services", "deployments"))
			if c.meanwhile != nil {
				s.create(t, c.meanwhile)
			}
			s.hub.On = failing(invalid, c.refuses...)
			got, err := s.write(t, d)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			var refused []string
			for _, r := range got.Refused {
				refused = append(refused, r.Object.String())
			}
			if got.Written != c.copied.Written || got.Overtaken != c.copied.Overtaken || !slices.Equal(refused, c.refused) {
				t.Errorf("written %d, overtaken %d, refused %v", got.Written, got.Overtaken, refused)
			}
			if (s.policy(t) != nil) != c.policy {
				t.Errorf("written: %v", s.hub.Writes)
			}
		})
	}
}

// A command that is interrupted writes no policy, and counts as refused nothing that the hub was not asked about to the end.
func TestWriteCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		before bool
		want   string
	}{
		"before the template is written": {true, "interrupted after 0 of 1 templates, before the policy was written: run the command again: "},
		"after the template is written":  {false, "interrupted after 1 of 1 templates, before the policy was written: run the command again: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			d := s.draft(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			s.hub.On = func(verb string, object client.Object) error {
				if c.before && adoptiontest.Describe(verb, object) == "create Deployment it" {
					interrupt()
					return ctx.Err()
				}
				return nil
			}
			got, err := d.Write(ctx, s.hub, func(int) { interrupt() })
			if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), c.want) || len(got.Refused) > 0 {
				t.Errorf("refused %v, %v", got.Refused, err)
			}
			if slices.Contains(s.hub.Writes, "create PropagationPolicy adopted-west") {
				t.Error("the policy is written")
			}
		})
	}
}

// A policy that is there already gets the further kinds, and keeps what a user changes in it while templates are written.
func TestWriteExtendsPolicy(t *testing.T) {
	s := newStage(t)
	if _, err := s.write(t, s.draft(t)); err != nil {
		t.Fatal(err)
	}
	more := s.draft(t, kinds("deployments", "services"))
	p := s.policy(t)
	p.Spec.ConflictResolution, p.Spec.PropagateDeps = policyv1alpha1.ConflictAbort, true
	if err := s.hub.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	conflicts := 0
	s.hub.On = func(verb string, object client.Object) error {
		if conflicts == 0 && adoptiontest.Describe(verb, object) == "update PropagationPolicy adopted-west" {
			conflicts++
			return apierrors.NewConflict(schema.GroupResource{Resource: "propagationpolicies"}, object.GetName(), errors.New("its status has changed"))
		}
		return nil
	}
	if _, err := s.write(t, more); err != nil || conflicts != 1 {
		t.Fatalf("%d conflicts, %v", conflicts, err)
	}
	p = s.policy(t)
	var selected []string
	for _, s := range p.Spec.ResourceSelectors {
		selected = append(selected, s.Kind)
	}
	if diff := cmp.Diff([]string{"Deployment", "Service"}, selected); diff != "" || p.Spec.ConflictResolution != policyv1alpha1.ConflictAbort || !p.Spec.PropagateDeps {
		t.Errorf("%+v (-want +got)\n%s", p.Spec, diff)
	}
	s.hub.Writes = nil
	if _, err := s.write(t, more); err != nil || len(s.hub.Writes) > 0 {
		t.Errorf("written once more: %v, %v", s.hub.Writes, err)
	}
	if err := s.hub.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write(t, more); !apierrors.IsNotFound(err) {
		t.Errorf("to a policy that a user has deleted: %v", err)
	}
	replaced := more.Policies[0].Object.(*policyv1alpha1.PropagationPolicy).DeepCopy()
	replaced.ResourceVersion, replaced.UID = "", "another"
	s.create(t, replaced)
	if _, err := s.write(t, more); err == nil || !strings.Contains(err.Error(), "another client has replaced the policy") {
		t.Errorf("to a policy that is another one: %v", err)
	}
}

// What a draft prints can be applied as it is: the namespace first, the policy last, and nothing that only a server sets.
func TestObjects(t *testing.T) {
	s := newStage(t)
	d := s.draft(t)
	all, err := d.Objects()
	if err != nil || namesOf(all) != "Namespace shop, Deployment shop/it, PropagationPolicy shop/adopted-west" {
		t.Fatalf("%s, %v", namesOf(all), err)
	}
	if _, err := s.write(t, d); err != nil {
		t.Fatal(err)
	}
	p := s.policy(t)
	p.Status.ObservedGeneration = 1
	if err := s.hub.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	d = s.draft(t)
	all, err = d.Objects()
	if err != nil || namesOf(all) != "PropagationPolicy shop/adopted-west" {
		t.Fatalf("of what is there already: %s, %v", namesOf(all), err)
	}
	want := map[string]any{"namespace": "shop", "name": "adopted-west", "labels": map[string]any{LabelAdoptedFrom: "west"}}
	if diff := cmp.Diff(want, all[0].Object["metadata"]); diff != "" || all[0].Object["status"] != nil || all[0].GetAPIVersion() != "policy.karmada.io/v1alpha1" {
		t.Errorf("%s: %v (-want +got)\n%s", all[0].GetAPIVersion(), all[0].Object["status"], diff)
	}
	if none, err := (Draft{}).Objects(); len(none) > 0 || err != nil {
		t.Errorf("of an empty draft: %s, %v", namesOf(none), err)
	}
}

// Nothing to adopt in a namespace is a result; a namespace that the cluster does not have is a mistake.
func TestDraftOfAnAbsentNamespace(t *testing.T) {
	s := newStage(t)
	elsewhere := func(a *Takeover) { a.Namespace = "shpo" }
	if _, err := s.tryDraft(t, takeover(elsewhere)); err == nil || !strings.HasPrefix(err.Error(), "namespace shpo does not exist in cluster west") {
		t.Errorf("got %v", err)
	}
	if err := s.west.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shpo"}}); err != nil {
		t.Fatal(err)
	}
	if d, err := s.tryDraft(t, takeover(elsewhere)); err != nil || len(d.Policies) > 0 {
		t.Errorf("got %+v, %v", d, err)
	}
}

package takeover

import (
	"context"
	"errors"
	"net/http"
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

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

const cart = "Deployment apps/v1\nmetadata: {labels: {app: cart}}\nspec: {template: {spec: {containers: [{name: cart, envFrom: [{configMapRef: {name: it}}]}]}}}"

// newHub is a hub that a cluster has joined as west. The cluster runs a Deployment, with the ConfigMap that it requires.
func newHub(t *testing.T, objects ...client.Object) (hub, member *adoptiontest.APIServer) {
	t.Helper()
	member = adoptiontest.NewAPIServer(t, adoptiontest.Object(t, cart), adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}"), adoptiontest.Object(t, "Service v1"))
	hub = adoptiontest.NewAPIServer(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: model.SecretNamespace, Name: "west"}, Data: map[string][]byte{"caBundle": member.Authority()}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Spec: clusterv1alpha1.ClusterSpec{
			APIEndpoint: member.URL, SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: model.SecretNamespace, Name: "west"},
		}})
	hub.Put(t, objects...)
	return hub, member
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

func draft(t *testing.T, hub *adoptiontest.APIServer, a Takeover) Draft {
	t.Helper()
	d, err := a.Draft(t.Context(), hub.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func namesOf(objects []*unstructured.Unstructured) string {
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+model.NameOf(o))
	}
	return strings.Join(names, ", ")
}

func write(t *testing.T, hub *adoptiontest.APIServer, d Draft) (Copied, error) {
	t.Helper()
	return d.Write(t.Context(), hub.Client(t), func(int) {})
}

// A takeover finds each object once, and only what is asked for.
func TestDraftSelects(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Takeover)
		want   string
	}{
		"a kind":                    {func(*Takeover) {}, "Deployment shop/it"},
		"a kind twice":              {func(a *Takeover) { a.Kinds = []string{"deployments", "deployment"} }, "Deployment shop/it"},
		"two kinds, in their order": {func(a *Takeover) { a.Kinds = []string{"services", "deployments"} }, "Service shop/it, Deployment shop/it"},
		"with dependencies":         {func(a *Takeover) { a.WithDependencies = true }, "Deployment shop/it, ConfigMap shop/it"},
		"with a dependency that is selected itself": {func(a *Takeover) { a.WithDependencies, a.Kinds = true, []string{"configmaps", "deployments"} }, "ConfigMap shop/it, Deployment shop/it"},
		"by label": {func(a *Takeover) {
			a.Selector, a.Kinds = labels.SelectorFromSet(labels.Set{"app": "cart"}), []string{"services", "deployments"}
		}, "Deployment shop/it"},
		"another namespace": {func(a *Takeover) { a.Namespace = "pay" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hub, member := newHub(t)
			d := draft(t, hub, takeover(c.change))
			if got := namesOf(d.Templates); got != c.want {
				t.Errorf("got %s", got)
			}
			if (d.Policy != nil) != (c.want != "") || d.Complete() || d.NewNamespace != (c.want != "") {
				t.Errorf("policy %v, complete %t, new namespace %t", d.Policy, d.Complete(), d.NewNamespace)
			}
			if written := append(hub.Requests(false), member.Requests(false)...); len(written) > 0 {
				t.Errorf("a draft has written %v", written)
			}
		})
	}
}

func TestDraftFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
	policyOf := func(cluster string) client.Object {
		return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "adopted-west", Labels: map[string]string{LabelAdoptedFrom: cluster}}}
	}
	for name, c := range map[string]struct {
		change          func(*Takeover)
		have            client.Object
		without         string
		onHub, inMember string
		want            string
	}{
		"a cluster that has not joined":    {change: func(a *Takeover) { a.Cluster = "east" }, want: "no cluster east has joined the hub"},
		"a kind that the cluster has not":  {change: func(a *Takeover) { a.Kinds = []string{"wheels"} }, want: `cluster west has no kind "wheels": `},
		"a kind in no namespace":           {change: func(a *Takeover) { a.Kinds = []string{"namespaces"} }, want: "namespaces are cluster-scoped: only namespaced resources can be adopted"},
		"a kind that the hub has not":      {without: "Deployment", want: "the hub has no kind Deployment in apps/v1: install its CRD on the hub, or name other kinds with --kind"},
		"a hub without CRDs":               {without: "PropagationPolicy", want: "the hub has no PropagationPolicies: install its CRDs with `fairlead crds install`"},
		"a policy of a user":               {have: policyOf(""), want: "PropagationPolicy shop/adopted-west exists already, and was not created for resources adopted from cluster west: give another name with --policy"},
		"a policy for another cluster":     {have: policyOf("east"), want: "PropagationPolicy shop/adopted-west exists already"},
		"the hub has no ID to read":        {onHub: "/namespaces/kube-system", want: "get the ID of the hub: "},
		"the hub does not let it list":     {onHub: "/deployments", want: "list Deployment on the hub: "},
		"the policy may not be read":       {onHub: "/propagationpolicies/adopted-west", want: "get PropagationPolicy shop/adopted-west: "},
		"the namespace may not be read":    {onHub: "/namespaces/shop", want: "forbidden"},
		"the cluster does not let it list": {inMember: "/deployments", want: "list deployments in cluster west: "},
		"a dependency may not be read":     {change: func(a *Takeover) { a.WithDependencies = true }, inMember: "/configmaps/it", want: "get ConfigMap shop/it in cluster west: "},
	} {
		t.Run(name, func(t *testing.T) {
			hub, member := newHub(t)
			if c.have != nil {
				hub.Put(t, c.have)
			}
			hub.Without = map[string]bool{c.without: true}
			failing := func(path string) func(*http.Request) error {
				return func(r *http.Request) error {
					if path != "" && strings.HasSuffix(r.URL.Path, path) {
						return forbidden
					}
					return nil
				}
			}
			hub.Fail, member.Fail = failing(c.onHub), failing(c.inMember)
			change := c.change
			if change == nil {
				change = func(*Takeover) {}
			}
			d, err := takeover(change).Draft(t.Context(), hub.Client(t))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(c.want, "forbidden") && len(d.Templates) > 0 {
				t.Errorf("%d templates, %v", len(d.Templates), err)
			}
		})
	}
}

// Interrupted at any write, a takeover is completed by running the command again, and then there is nothing left to do. The policy
// comes last: before it nothing happens in the cluster.
func TestWriteInterruptedAtEveryWrite(t *testing.T) {
	const writes = 4
	for kill := range writes + 1 {
		hub, _ := newHub(t)
		a := takeover(func(a *Takeover) { a.WithDependencies = true })
		d := draft(t, hub, a)
		// Templates are created side by side.
		var mu sync.Mutex
		var done []string
		hub.Fail = func(r *http.Request) error {
			if r.Method == http.MethodGet {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if len(done) >= kill {
				return errors.New("killed")
			}
			done = append(done, r.URL.Path)
			return nil
		}
		_, err := write(t, hub, d)
		if (err == nil) != (kill == writes) {
			t.Errorf("killed at write %d: %v", kill, err)
		}
		if kill == writes && (len(done) != writes || !strings.HasSuffix(done[0], "/namespaces") || !strings.HasSuffix(done[writes-1], "/propagationpolicies")) {
			t.Errorf("undisturbed: %v", done)
		}
		hub.Fail = nil
		if d = draft(t, hub, a); !d.Complete() {
			if _, err := write(t, hub, d); err != nil {
				t.Errorf("killed at write %d, and again: %v", kill, err)
			}
		}
		if d = draft(t, hub, a); !d.Complete() || len(d.Present) != 2 || len(d.Skipped) > 0 || d.NewNamespace {
			t.Errorf("killed at write %d, it leaves %s, %v", kill, namesOf(d.Templates), d.Skipped)
		}
		p := &policyv1alpha1.PropagationPolicy{}
		if err := hub.Client(t).Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "adopted-west"}, p); err != nil || len(p.Spec.ResourceSelectors) != 2 {
			t.Errorf("killed at write %d, the policy selects %v: %v", kill, p.Spec.ResourceSelectors, err)
		}
	}
}

// What the hub does with a template decides what is counted, and whether there is a policy.
func TestWrite(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "it", nil)
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, hub *adoptiontest.APIServer, r *http.Request) error
		copied    Copied
		refused   []string
		policy    bool
		want      string
	}{
		"accepted": {copied: Copied{Written: 2}, policy: true},
		"another client has created one meanwhile": {
			meanwhile: func(t *testing.T, hub *adoptiontest.APIServer, r *http.Request) error {
				if strings.HasSuffix(r.URL.Path, "/services") {
					hub.Put(t, adoptiontest.Object(t, "Service v1"))
				}
				return nil
			},
			copied: Copied{Written: 1, Overtaken: 1}, policy: true,
		},
		"another client has created the namespace meanwhile": {
			meanwhile: func(t *testing.T, hub *adoptiontest.APIServer, r *http.Request) error {
				if strings.HasSuffix(r.URL.Path, "/namespaces") {
					hub.Put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
				}
				return nil
			},
			copied: Copied{Written: 2}, policy: true,
		},
		"one is refused": {
			meanwhile: func(_ *testing.T, _ *adoptiontest.APIServer, r *http.Request) error {
				if strings.HasSuffix(r.URL.Path, "/deployments") {
					return invalid
				}
				return nil
			},
			copied: Copied{Written: 1}, refused: []string{"Deployment shop/it"}, policy: true,
		},
		"all are refused": {
			meanwhile: func(_ *testing.T, _ *adoptiontest.APIServer, r *http.Request) error {
				if strings.Contains(r.URL.Path, "/shop/") {
					return invalid
				}
				return nil
			},
			refused: []string{"Deployment shop/it", "Service shop/it"},
			want:    "the hub accepted none of the templates, so there is nothing for the policy to take",
		},
		"the namespace is refused": {
			meanwhile: func(_ *testing.T, _ *adoptiontest.APIServer, r *http.Request) error {
				if strings.HasSuffix(r.URL.Path, "/namespaces") {
					return invalid
				}
				return nil
			},
			want: "create namespace shop on the hub: ",
		},
		"another client has created the policy meanwhile": {
			meanwhile: func(t *testing.T, hub *adoptiontest.APIServer, r *http.Request) error {
				if strings.HasSuffix(r.URL.Path, "/propagationpolicies") {
					hub.Put(t, &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "adopted-west"}})
				}
				return nil
			},
			copied: Copied{Written: 2}, policy: true, want: "the templates are on the hub: run the command again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub, _ := newHub(t)
			d := draft(t, hub, takeover(func(a *Takeover) { a.Kinds = []string{"services", "deployments"} }))
			hub.Fail = func(r *http.Request) error {
				if c.meanwhile == nil || r.Method == http.MethodGet {
					return nil
				}
				return c.meanwhile(t, hub, r)
			}
			got, err := write(t, hub, d)
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
			if slices.Contains(hub.Keys(), "propagationpolicies/shop/adopted-west") != c.policy {
				t.Errorf("the hub has %v", hub.Keys())
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
			hub, _ := newHub(t)
			d := draft(t, hub, takeover())
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			hub.Fail = func(r *http.Request) error {
				if c.before && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/deployments") {
					interrupt()
					return adoptiontest.UntilClosed(r)
				}
				return nil
			}
			got, err := d.Write(ctx, hub.Client(t), func(int) { interrupt() })
			if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), c.want) || len(got.Refused) > 0 {
				t.Errorf("refused %v, %v", got.Refused, err)
			}
			if slices.Contains(hub.Keys(), "propagationpolicies/shop/adopted-west") {
				t.Error("the policy is written")
			}
		})
	}
}

// A policy that is there already gets the further kinds, and keeps what a user has changed in it; not if it changed since it was read.
func TestWriteExtendsPolicy(t *testing.T) {
	hub, _ := newHub(t)
	if _, err := write(t, hub, draft(t, hub, takeover())); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: "shop", Name: "adopted-west"}
	p := &policyv1alpha1.PropagationPolicy{}
	if err := hub.Client(t).Get(t.Context(), key, p); err != nil {
		t.Fatal(err)
	}
	p.Spec.ConflictResolution, p.Spec.PropagateDeps = policyv1alpha1.ConflictAbort, true
	hub.Put(t, p)
	more := draft(t, hub, takeover(func(a *Takeover) { a.Kinds = []string{"deployments", "services"} }))
	stale := more
	if _, err := write(t, hub, more); err != nil {
		t.Fatal(err)
	}
	if err := hub.Client(t).Get(t.Context(), key, p); err != nil {
		t.Fatal(err)
	}
	var selected []string
	for _, s := range p.Spec.ResourceSelectors {
		selected = append(selected, s.Kind)
	}
	if diff := cmp.Diff([]string{"Deployment", "Service"}, selected); diff != "" || p.Spec.ConflictResolution != policyv1alpha1.ConflictAbort || !p.Spec.PropagateDeps {
		t.Errorf("%+v (-want +got)\n%s", p.Spec, diff)
	}
	if _, err := write(t, hub, stale); !apierrors.IsConflict(err) {
		t.Errorf("a draft of an earlier policy: %v", err)
	}
}

// What a draft prints can be applied as it is: the namespace first, the policy last, and nothing that only a server sets.
func TestObjects(t *testing.T) {
	hub, _ := newHub(t)
	d := draft(t, hub, takeover())
	all, err := d.Objects()
	if err != nil || namesOf(all) != "Namespace shop, Deployment shop/it, PropagationPolicy shop/adopted-west" {
		t.Fatalf("%s, %v", namesOf(all), err)
	}
	if _, err := write(t, hub, d); err != nil {
		t.Fatal(err)
	}
	p := &policyv1alpha1.PropagationPolicy{}
	if err := hub.Client(t).Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "adopted-west"}, p); err != nil {
		t.Fatal(err)
	}
	p.Status.ObservedGeneration = 1
	hub.Put(t, p)
	d = draft(t, hub, takeover())
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

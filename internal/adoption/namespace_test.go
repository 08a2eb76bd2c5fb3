package adoption

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// deletion is an object that the namespace controller of the hub deletes.
type deletion struct {
	what string
	do   func()
}

// deleteNamespace marks namespace shop as deleted, and returns all that is in it.
func (w *world) deleteNamespace() []deletion {
	w.deletedNamespaces["shop"] = true
	var all []deletion
	for key := range w.policies {
		if key.Namespace == "shop" {
			all = append(all, deletion{"policy " + key.Name, func() { delete(w.policies, key) }})
		}
	}
	for key := range w.templates {
		all = append(all, deletion{key.Kind.Kind + " " + key.Name, func() { delete(w.templates, key) }})
	}
	for key := range w.bindings {
		all = append(all, deletion{"binding " + key.Name, func() {
			if b := w.bindings[key]; b != nil && b.GetDeletionTimestamp() == nil {
				w.deleteBinding(b, "")
			}
		}})
	}
	slices.SortFunc(all, func(a, b deletion) int { return strings.Compare(a.what, b.what) })
	return all
}

// permutations are all orders of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}

// What becomes of the objects in the members when their namespace is deleted on the hub depends on the policy, and not on the order
// in which the namespace controller deletes policies, templates and bindings, nor on when the operator sees it.
func TestNamespaceDeletedInAnyOrder(t *testing.T) {
	withSettings := func(p *policy.Policy) {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"})
	}
	withDependencies := func(p *policy.Policy) { p.Spec.PropagateDeps = true }
	preserving := func(p *policy.Policy) { p.Spec.PreserveResourcesOnDeletion = ptr.To(true) }
	inWest := func(p *policy.Policy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}
	}
	// another policy, which stays if it is of the cluster.
	another := func(namespace string, changes ...func(*policy.Policy)) func(*world) {
		return func(w *world) {
			p := &policy.Policy{Namespace: namespace, Name: "another", Spec: policyv1alpha1.PropagationSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "v1", Kind: "ConfigMap"}},
			}}
			for _, change := range changes {
				change(p)
			}
			w.policies[p.Key()] = p
		}
	}
	for name, c := range map[string]struct {
		change []func(*policy.Policy)
		// before is what happens before the namespace is deleted.
		before func(*world)
		// stays is what the members have in the end.
		stays string
	}{
		"deleted":                             {[]func(*policy.Policy){withSettings}, nil, ""},
		"preserved":                           {[]func(*policy.Policy){withSettings, preserving}, nil, "east pay, east settings, west pay, west settings"},
		"dependencies of no policy stay":      {[]func(*policy.Policy){withDependencies}, nil, "east settings, west settings"},
		"dependencies of the policy":          {[]func(*policy.Policy){withSettings, withDependencies}, nil, ""},
		"dependencies of the policy, in west": {[]func(*policy.Policy){withDependencies}, another("shop", inWest), "east settings"},
		"after the policy":                    {[]func(*policy.Policy){withSettings}, func(w *world) { clear(w.policies) }, ""},
		"after the policy, with dependencies": {[]func(*policy.Policy){withSettings, withDependencies}, func(w *world) { clear(w.policies) }, ""},
		"after the policy, preserved":         {[]func(*policy.Policy){withSettings, preserving}, func(w *world) { clear(w.policies) }, "east pay, east settings, west pay, west settings"},
		"a policy of the cluster would do":    {[]func(*policy.Policy){withSettings}, another("", inWest), ""},
		"one would do, and preserves":         {[]func(*policy.Policy){withSettings}, another("", preserving), ""},
		"a policy of the namespace would do":  {[]func(*policy.Policy){withSettings, preserving}, another("shop", inWest), "east pay, east settings, west pay, west settings"},
	} {
		t.Run(name, func(t *testing.T) {
			begin := func() (*world, []deletion) {
				w := newWorld(t, "east", "west")
				w.template("pay", payOnHub)
				w.template("settings", settings)
				w.do("a policy", func() {
					p := w.policy("adopt", abort)
					for _, change := range c.change {
						change(p)
					}
				})
				if c.before != nil {
					w.do("before", func() { c.before(w) })
				}
				return w, w.deleteNamespace()
			}
			// The namespace controller deletes one kind after the other.
			kinds, wrong := []string{"policy", "Deployment", "ConfigMap", "binding"}, 0
			for _, order := range permutations(len(kinds)) {
				// The operator sees each deletion on its own, or only the state after the first kind, or after the second.
				for seen := range 3 {
					w, all := begin()
					var said []string
					for i, at := range order {
						said = append(said, kinds[at])
						for _, d := range all {
							if strings.HasPrefix(d.what, kinds[at]) {
								w.byPeople = true
								d.do()
								w.byPeople = false
								if seen == 0 {
									w.settle()
								}
							}
						}
						if seen == i+1 {
							w.settle()
						}
					}
					w.settle()
					if got := w.remaining(); got != c.stays {
						if wrong++; wrong == 1 {
							t.Errorf("deleted in the order %s, seen %d: got %q, want %q\n%s", strings.Join(said, ", "), seen, got, c.stays, w.log.String())
						}
					}
				}
			}
			if wrong > 0 {
				t.Errorf("wrong in %d runs", wrong)
			}
		})
	}
}

// remaining is what the members have, marked objects in capitals, and what is left on the hub.
func (w *world) remaining() string {
	var all []string
	for name, m := range w.members {
		for key, object := range m.objects {
			said := name + " " + key.Name
			if model.IdentityOf(hubID, object).OwnershipOf(object) != model.Unmanaged {
				said = strings.ToUpper(said)
			}
			all = append(all, said)
		}
	}
	slices.Sort(all)
	if n := len(w.bindings) + len(w.works) + len(w.originals); n > 0 {
		all = append(all, fmt.Sprintf("%d objects of the hub", n))
	}
	return strings.Join(all, ", ")
}

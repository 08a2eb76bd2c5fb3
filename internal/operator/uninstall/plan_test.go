package uninstall

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func kind(apiVersion, name string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, name)
}

var (
	revisions = CRD{Name: "istiorevisions.sailoperator.io", Passage: "revision", Kind: kind("sailoperator.io/v1", "IstioRevision")}
	works     = CRD{Name: "works.work.karmada.io", Passage: "adoption", Kind: kind("work.karmada.io/v1alpha1", "Work")}
	bindings  = CRD{Name: "resourcebindings.work.karmada.io", Passage: "adoption", Kind: kind("work.karmada.io/v1alpha2", "ResourceBinding")}
	mzs       = CRD{Name: "materializes.materialize.cloud", Passage: "rollout", Kind: kind("materialize.cloud/v1alpha2", "Materialize"), Converted: true}
)

func object(crd CRD, name string, finalizers ...string) Object {
	return Object{Ref: Ref{crd.Kind, "", name}, UID: types.UID(name), Finalizers: finalizers}
}

func TestDecide(t *testing.T) {
	foreign := works
	foreign.Foreign = true
	foreignRevisions := revisions
	foreignRevisions.Foreign = true
	istiod := Ref{kind("apps/v1", "Deployment"), "istio-system", "istiod"}
	operator := Deployment{Ref{kind("apps/v1", "Deployment"), "fairlead-system", "fairlead"}, 2}

	type result struct {
		Rows       []Row
		Finalizers []string
		Owners     []string
		CRDs       []string
		Summary    []string
		Namespaces []string
	}
	for name, c := range map[string]struct {
		observed Observed
		want     result
	}{
		"nothing": {Observed{}, result{}},
		"CRDs without objects": {
			Observed{CRDs: []CRD{revisions, works}},
			result{CRDs: []string{revisions.Name, works.Name}},
		},
		"leases that operators have left for older versions": {
			Observed{FormerLeases: []string{"fairlead-system", "other"}, Deployments: []Deployment{{operator.Ref, 0}}},
			result{Namespaces: []string{"fairlead-system", "other"}},
		},
		"a control plane": {
			Observed{
				CRDs:        []CRD{revisions},
				Objects:     []Object{object(revisions, "default", "fairlead.dev/uninstall", "example.com/theirs")},
				Dependents:  []Dependent{{Ref: istiod, UID: "d", Owners: []types.UID{"default"}}},
				Deployments: []Deployment{operator},
			},
			result{
				Rows:       []Row{{Passage: "revision", Kind: "IstioRevision", Objects: 1, Finalizers: 1, KeepRunning: 1}},
				Owners:     []string{"Deployment istio-system/istiod"},
				Finalizers: []string{"IstioRevision default fairlead.dev/uninstall"},
				CRDs:       []string{revisions.Name},
				Summary: []string{
					"scale Deployment fairlead-system/fairlead from 2 replicas to 0",
					"remove the owner references of 1 objects, which keep running",
					"remove the finalizers of 1 objects",
				},
				Namespaces: []string{"fairlead-system"},
			},
		},
		"Works before their bindings": {
			Observed{
				CRDs: []CRD{bindings, works},
				Objects: []Object{
					object(bindings, "b", "karmada.io/binding-controller"), object(works, "w", "karmada.io/execution-controller"), object(works, "released"),
				},
			},
			result{
				Rows: []Row{
					{Passage: "adoption", Kind: "ResourceBinding", Objects: 1, Finalizers: 1}, {Passage: "adoption", Kind: "Work", Objects: 2, Finalizers: 1},
				},
				Finalizers: []string{"Work w karmada.io/execution-controller", "ResourceBinding b karmada.io/binding-controller"},
				CRDs:       []string{bindings.Name, works.Name},
				Summary:    []string{"remove the finalizers of 2 objects"},
			},
		},
		"Works of Karmada": {
			Observed{CRDs: []CRD{foreign}, Objects: []Object{object(works, "w", "karmada.io/execution-controller")}},
			result{Rows: []Row{{Passage: "adoption", Kind: "Work", Objects: 1, Foreign: true}}},
		},
		"a revision of Fairlead under the CRD of another operator": {
			Observed{CRDs: []CRD{foreignRevisions}, Objects: []Object{object(revisions, "default", "fairlead.dev/uninstall")}},
			result{
				Rows:       []Row{{Passage: "revision", Kind: "IstioRevision", Objects: 1, Finalizers: 1, Foreign: true}},
				Finalizers: []string{"IstioRevision default fairlead.dev/uninstall"},
				Summary:    []string{"remove the finalizers of 1 objects"},
			},
		},
		"an environment": {
			Observed{
				CRDs: []CRD{mzs}, Objects: []Object{object(mzs, "mz")}, Dependents: []Dependent{{Ref: istiod, Owners: []types.UID{"mz"}}},
				Deployments: []Deployment{{operator.Ref, 0}},
			},
			result{
				Rows:       []Row{{Passage: "rollout", Kind: "Materialize", Objects: 1, KeepRunning: 1}},
				Owners:     []string{"Deployment istio-system/istiod"},
				CRDs:       []string{mzs.Name},
				Summary:    []string{"remove the owner references of 1 objects, which keep running", "serve materializes.materialize.cloud without the operator's webhook, as v1alpha2 alone"},
				Namespaces: []string{"fairlead-system"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(c.observed)
			got := result{Rows: plan.Rows, CRDs: plan.CRDs, Summary: plan.Summary(), Namespaces: plan.Namespaces}
			for _, r := range plan.Finalizers {
				got.Finalizers = append(got.Finalizers, r.String()+" "+r.Finalizer)
			}
			for _, r := range plan.Owners {
				got.Owners = append(got.Owners, r.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

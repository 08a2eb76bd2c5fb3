// Package foreign knows the controllers of others that act on the kinds of a passage, and decides whether the passage holds
// because of one: two controllers never act on the same objects.
package foreign

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Kind of objects in which traces of another controller are looked for.
type Kind struct {
	schema.GroupResource
	Kind string
	// Versions in which the kind may be served. The first one that is served is read.
	Versions []string
	// Starts holds for a kind that starts the passage: its objects say that the passage holds.
	Starts bool
	// Tenants holds for a kind that tenants may write in their namespaces. Of its objects only the status is heeded, which they may
	// not write: nobody can hold a passage by pretending to be another controller.
	Tenants bool
	// GeneratedFrom is the kind of Kubernetes from whose objects the system generates those of this kind, if it does.
	GeneratedFrom string
}

// System is software whose controllers act on the kinds of a passage, and what tells that it is, or was, there.
type System struct {
	Passage string
	Name    string
	// Page of the documentation about moving in from it.
	Page string

	// Deployments are names, in any namespace, and Leases are names in Namespaces, or in that of a Deployment.
	Deployments []string
	Leases      []string
	Namespaces  []string
	// Labels of Deployments, each with the values that it may have.
	Labels []Label
	// Images are the last parts of the names of repositories.
	Images []string
	// Managers are the field managers as which it writes.
	Managers []string
	// Finalizers that Fairlead never sets.
	Finalizers []string
	// Generated tells what it generates from other objects, if it does.
	Generated *Generated
	Kinds     []Kind
}

// Label of a Deployment.
type Label struct {
	Key    string
	Values []string
}

// Systems are all that are known, one for each passage.
func Systems() []System {
	return []System{
		{
			Passage: "revision", Name: "Sail Operator", Page: "docs/moving/sail-operator.md",
			Deployments: []string{"sail-operator", "servicemesh-operator3"},
			Leases:      []string{"sail-operator-lock"},
			Namespaces:  []string{"sail-operator", "openshift-operators"},
			Labels: []Label{
				{"control-plane", []string{"sail-operator", "servicemesh-operator3"}},
				{"app.kubernetes.io/part-of", []string{"sailoperator", "sail-operator", "servicemeshoperator3"}},
			},
			Images:     []string{"sail-operator", "istio-sail-rhel9-operator", "istio-rhel9-operator"},
			Managers:   []string{"sail-operator"},
			Finalizers: []string{"sailoperator.io/sail-operator"},
			Kinds: []Kind{
				kind("sailoperator.io", "istios", "Istio", true, "v1"),
				kind("sailoperator.io", "istiorevisions", "IstioRevision", false, "v1"),
				kind("sailoperator.io", "istiorevisiontags", "IstioRevisionTag", false, "v1"),
			},
		},
		{
			Passage: "adoption", Name: "Karmada control plane", Page: "docs/moving/karmada.md",
			Deployments: []string{"karmada-controller-manager", "karmada-scheduler"},
			Leases:      []string{"karmada-controller-manager", "karmada-scheduler"},
			Namespaces:  []string{"karmada-system"},
			Labels:      []Label{{"app", []string{"karmada-controller-manager", "karmada-scheduler"}}},
			Images:      []string{"karmada-controller-manager", "karmada-scheduler"},
			Managers:    []string{"karmada-controller-manager", "karmada-scheduler", "karmada-agent"},
			Finalizers: []string{
				"karmada.io/cluster-controller", "karmada.io/propagation-policy-controller", "karmada.io/cluster-propagation-policy-controller",
				"karmada.io/cluster-resource-binding-controller", "karmada.io/binding-dependencies-distributor",
			},
			Kinds: []Kind{
				kind("policy.karmada.io", "propagationpolicies", "PropagationPolicy", true, "v1alpha1").ofTenants(),
				kind("policy.karmada.io", "clusterpropagationpolicies", "ClusterPropagationPolicy", true, "v1alpha1"),
				kind("cluster.karmada.io", "clusters", "Cluster", false, "v1alpha1"),
				kind("work.karmada.io", "resourcebindings", "ResourceBinding", false, "v1alpha2"),
				kind("work.karmada.io", "clusterresourcebindings", "ClusterResourceBinding", false, "v1alpha2"),
				kind("work.karmada.io", "works", "Work", false, "v1alpha1"),
			},
		},
		{
			Passage: "rollout", Name: "Materialize operator", Page: "docs/moving/materialize-operator.md",
			Deployments: []string{"materialize-operator"},
			Labels:      []Label{{"app.kubernetes.io/name", []string{"materialize-operator"}}},
			Images:      []string{"orchestratord"},
			Managers:    []string{"orchestratord.materialize.cloud", "orchestratord"},
			Finalizers:  []string{"orchestratord.materialize.cloud/materialize"},
			Kinds:       []Kind{kind("materialize.cloud", "materializes", "Materialize", true, "v1alpha2", "v1alpha1").ofTenants()},
		},
		{
			Passage: "meshservice", Name: "Kuma control plane", Page: "docs/moving/kuma.md",
			Deployments: []string{"kuma-control-plane", "kong-mesh-control-plane"},
			Leases:      []string{"kuma-cp-leader"},
			Namespaces:  []string{"kuma-system", "kong-mesh-system"},
			Labels:      []Label{{"app", []string{"kuma-control-plane", "kong-mesh-control-plane"}}},
			Images:      []string{"kuma-cp"},
			Managers:    []string{"kuma-cp"},
			Generated:   &Generated{Label: kumav1alpha1.LabelManagedBy, SystemValue: "k8s-controller", FairleadValue: kumav1alpha1.ManagedBy},
			Kinds: []Kind{
				kind("kuma.io", "meshes", "Mesh", true, "v1alpha1"),
				kind("kuma.io", "meshservices", "MeshService", false, "v1alpha1").ofTenants().generatedFromEach("Service"),
				kind("kuma.io", "dataplanes", "Dataplane", false, "v1alpha1").ofTenants().generatedFromEach("Pod"),
			},
		},
	}
}

func kind(group, resource, name string, starts bool, versions ...string) Kind {
	return Kind{GroupResource: schema.GroupResource{Group: group, Resource: resource}, Kind: name, Versions: versions, Starts: starts}
}

func (k Kind) ofTenants() Kind {
	k.Tenants = true
	return k
}

func (k Kind) generatedFromEach(kind string) Kind {
	k.GeneratedFrom = kind
	return k
}

// Of are the systems of a passage.
func Of(passage string) System {
	all := Systems()
	return all[slices.IndexFunc(all, func(s System) bool { return s.Passage == passage })]
}

// hasImage tells whether an image is one of the system, in whichever registry.
func (s System) hasImage(image string) bool {
	name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], "@")
	name, _, _ = strings.Cut(name, ":")
	return slices.Contains(s.Images, name)
}

func (s System) hasLabel(labels map[string]string) bool {
	return slices.ContainsFunc(s.Labels, func(l Label) bool { return slices.Contains(l.Values, labels[l.Key]) })
}

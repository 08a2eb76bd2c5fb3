package uninstall

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Ref names an object.
type Ref struct {
	Kind      schema.GroupVersionKind
	Namespace string
	Name      string
}

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind.Kind + " " + r.Name
	}
	return r.Kind.Kind + " " + r.Namespace + "/" + r.Name
}

// CRD is one of Fairlead's.
type CRD struct {
	Name    string
	Passage string
	// Kind in the version in which objects are stored.
	Kind schema.GroupVersionKind
	// Foreign holds for one that another installer brought.
	Foreign bool
	// Converted holds if the operator's webhook converts its objects.
	Converted bool
	// Stored are older versions that objects may be stored in.
	Stored []string
}

// Object of one of the CRDs.
type Object struct {
	Ref
	UID        types.UID
	Finalizers []string
}

// hasOwnFinalizer tells whether an object has a finalizer that nobody but Fairlead sets.
func (o Object) hasOwnFinalizer() bool { return slices.ContainsFunc(o.Finalizers, isOwnFinalizer) }

func isOwnFinalizer(name string) bool { return strings.HasPrefix(name, "fairlead.dev/") }

// Dependent is an object of another kind that the garbage collector would delete with an object of Fairlead.
type Dependent struct {
	Ref
	UID    types.UID
	Owners []types.UID
}

// Observed is what there is of Fairlead in a cluster.
type Observed struct {
	CRDs        []CRD
	Objects     []Object
	Dependents  []Dependent
	Deployments []Deployment
	// FormerLeases are the namespaces with a lease that operators hold for older versions, also after the chart was uninstalled.
	FormerLeases []string
	// Unreadable are groups of APIs whose server does not answer. Nothing is known of the objects there.
	Unreadable []string
}

// Deployment of an operator by the chart.
type Deployment struct {
	Ref
	Replicas int32
}

// finalizers are those of Fairlead, in the order in which they are removed: what is sent to clusters before what it is made from.
// The names in the group karmada.io are those of Karmada too.
var finalizers = []struct {
	kind schema.GroupKind
	name string
}{
	{schema.GroupKind{Group: v1.GroupVersion.Group, Kind: v1.IstioRevisionTagKind}, v1.FinalizerUninstall},
	{schema.GroupKind{Group: v1.GroupVersion.Group, Kind: v1.IstioRevisionKind}, v1.FinalizerUninstall},
	{schema.GroupKind{Group: workv1alpha1.GroupVersion.Group, Kind: "Work"}, model.FinalizerExecution},
	{schema.GroupKind{Group: workv1alpha2.GroupVersion.Group, Kind: "ResourceBinding"}, model.FinalizerBinding},
	{schema.GroupKind{Group: workv1alpha2.GroupVersion.Group, Kind: "ClusterResourceBinding"}, model.FinalizerBinding},
	{schema.GroupKind{Group: clusterv1alpha1.GroupVersion.Group, Kind: clusterv1alpha1.ClusterKind}, model.FinalizerCluster},
}

// Release removes an owner or a finalizer from an object.
type Release struct {
	Ref
	UID       types.UID
	Owners    []types.UID
	Finalizer string
}

// Row is what becomes of the objects of one kind.
type Row struct {
	Passage string `json:"passage"`
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
	// Finalizers is how many of them have a finalizer of Fairlead.
	Finalizers int `json:"finalizers"`
	// KeepRunning are objects of other kinds that would be deleted with them, and stay.
	KeepRunning int `json:"keepRunning"`
	// Foreign holds for a CRD that another installer brought. Finalizers that are not Fairlead's alone are not removed.
	Foreign bool `json:"foreign,omitempty"`
}

// Plan is what uninstalling does.
type Plan struct {
	Rows []Row `json:"kinds"`
	// ScaleDown are the Deployments of operators that are scaled to 0 first.
	ScaleDown []Deployment `json:"-"`
	// Namespaces of operators, which keep a lease there for older versions.
	Namespaces []string `json:"-"`
	// Owners are removed before finalizers: an object that is being deleted goes with its last finalizer.
	Owners     []Release `json:"-"`
	Finalizers []Release `json:"-"`
	// Conversions are the CRDs that the operator's webhook no longer converts.
	Conversions []CRD `json:"-"`
	// CRDs that can be deleted afterwards.
	CRDs []string `json:"crds"`
	// Unreadable are groups of APIs whose objects are not released.
	Unreadable []string `json:"unreadable,omitempty"`
}

// Decide plans the release of all that depends on Fairlead. Nothing that runs is deleted or changed, but for its metadata.
func Decide(o Observed) Plan {
	plan := Plan{Unreadable: o.Unreadable}
	for _, d := range o.Deployments {
		if d.Replicas > 0 {
			plan.ScaleDown = append(plan.ScaleDown, d)
		}
		plan.Namespaces = append(plan.Namespaces, d.Namespace)
	}
	plan.Namespaces = append(plan.Namespaces, o.FormerLeases...)
	slices.Sort(plan.Namespaces)
	plan.Namespaces = slices.Compact(plan.Namespaces)
	kindOf := map[types.UID]schema.GroupKind{}
	rows := map[schema.GroupKind]*Row{}
	for _, crd := range o.CRDs {
		rows[crd.Kind.GroupKind()] = &Row{Passage: crd.Passage, Kind: crd.Kind.Kind, Foreign: crd.Foreign}
		if crd.Foreign {
			continue
		}
		plan.CRDs = append(plan.CRDs, crd.Name)
		if crd.Converted {
			plan.Conversions = append(plan.Conversions, crd)
		}
	}
	for _, object := range o.Objects {
		kind := object.Kind.GroupKind()
		kindOf[object.UID] = kind
		rows[kind].Objects++
	}
	for _, dependent := range o.Dependents {
		plan.Owners = append(plan.Owners, Release{Ref: dependent.Ref, UID: dependent.UID, Owners: dependent.Owners})
		rows[kindOf[dependent.Owners[0]]].KeepRunning++
	}
	for _, finalizer := range finalizers {
		for _, object := range o.Objects {
			row := rows[finalizer.kind]
			if object.Kind.GroupKind() != finalizer.kind || !slices.Contains(object.Finalizers, finalizer.name) || row.Foreign && !isOwnFinalizer(finalizer.name) {
				continue
			}
			row.Finalizers++
			plan.Finalizers = append(plan.Finalizers, Release{Ref: object.Ref, UID: object.UID, Finalizer: finalizer.name})
		}
	}
	for _, crd := range o.CRDs {
		if row := rows[crd.Kind.GroupKind()]; row.Objects > 0 {
			plan.Rows = append(plan.Rows, *row)
		}
	}
	slices.SortStableFunc(plan.Owners, func(a, b Release) int { return cmp.Compare(a.String(), b.String()) })
	return plan
}

// Summary is the plan in sentences.
func (p Plan) Summary() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, d := range p.ScaleDown {
		add("scale %s from %d replicas to 0", d.Ref, d.Replicas)
	}
	if len(p.Owners) > 0 {
		add("remove the owner references of %d objects, which keep running", len(p.Owners))
	}
	if len(p.Finalizers) > 0 {
		add("remove the finalizers of %d objects", len(p.Finalizers))
	}
	for _, crd := range p.Conversions {
		add("serve %s without the operator's webhook, as %s alone", crd.Name, crd.Kind.Version)
	}
	return lines
}

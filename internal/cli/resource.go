package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	adoptionforecast "github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/meshservice/forecast"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// account is all that can be told about a resource of a passage.
type account struct {
	Plan passage.Plan
	// Generation of the spec, and the one that the operator has last reported on.
	Generation, ObservedGeneration int64
	Conditions                     []metav1.Condition
	// References are what uses the resource; nil for a resource that nothing refers to.
	References []usage.Reference
	// Workloads are what moves with an Istio; nil for anything else.
	Workloads *workloads
	// Rollout is what belongs to a Materialize, and Verdict whether it rolls out; nil for anything else.
	Rollout  *environment
	Decision *rolloutDecision
	// Forecast is what becomes of all that a policy takes; nil for anything else, and where only its standing is asked for.
	Forecast *adoptionforecast.Forecast
	// Mesh is what becomes of the consumers of a Mesh; nil for anything else, and where only its standing is asked for.
	Mesh *forecast.Forecast
	// Adoption tells that the plan is of a policy, with a step for each object in each cluster.
	Adoption bool
	// Batching is how the steps of the plan are spread over time, where they are.
	Batching passage.Batching
	// Switching is how far the consumers of a Mesh are; nil for anything else.
	Switching *meshStatus
	// Note is what the reader should know about how the plan was made.
	Note string
}

// query is what is asked about a resource, beyond its name.
type query struct {
	// Version to plan for, instead of the one that the spec asks for.
	Version *string
	// Proposed is a Materialize to plan for, instead of the one that is there.
	Proposed *v1alpha2.Materialize
	// Policy to plan for, instead of the one that is there, and Templates to reckon with as if the hub had them.
	Policy    *policy.Policy
	Templates []*unstructured.Unstructured
	// Mesh is what is asked about one.
	Mesh meshPlanFlags
	// Charts are where the operator has its charts from, if that was told.
	Charts charts.Options
}

func (q query) hasCharts() bool { return q.Charts.Dir != "" || q.Charts.Repository != "" }

type reporter func(context.Context, client.Reader, client.ObjectKey, query) (account, error)

// reporters are the kinds that passages start from.
func reporters() map[schema.GroupKind]reporter {
	return map[schema.GroupKind]reporter{
		istios: reportIstio,
		v1.GroupVersion.WithKind(v1.IstioRevisionKind).GroupKind():    reportRevision,
		v1.GroupVersion.WithKind(v1.IstioRevisionTagKind).GroupKind(): reportTag,
		materializes:    reportMaterialize,
		policies:        reportPolicy,
		clusterPolicies: reportPolicy,
		meshes:          reportMesh,
	}
}

// plannable are those of the starters whose plans can be told from outside the operator.
func plannable() []schema.GroupKind {
	return []schema.GroupKind{istios, materializes, policies, clusterPolicies, meshes}
}

// The kinds that commands tell apart.
var (
	istios       = v1.GroupVersion.WithKind(v1.IstioKind).GroupKind()
	materializes = v1alpha2.GroupVersion.WithKind(v1alpha2.MaterializeKind).GroupKind()

	policies        = policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.PropagationPolicyKind).GroupKind()
	clusterPolicies = policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.ClusterPropagationPolicyKind).GroupKind()

	meshes = kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.MeshKind).GroupKind()
)

// resolveArgs connects, and understands the two arguments.
func resolveArgs(c *connect.Flags, args []string) (*connect.Cluster, connect.Resource, error) {
	cluster, err := c.Connect()
	if err != nil {
		return nil, connect.Resource{}, err
	}
	r, err := cluster.Resolve(args)
	if err == nil {
		err = checkKind(r)
	}
	return cluster, r, err
}

// checkKind refuses kinds that no passage starts from.
func checkKind(r connect.Resource) error {
	if r.Kind() == dataplanes {
		return console.UsageErrorf("no passage starts from a Dataplane: which policies apply to what it calls, "+
			"`fairlead status dataplane %s -n NAMESPACE --policies` tells", r.Key.Name)
	}
	if _, ok := reporters()[r.Kind()]; ok {
		return nil
	}
	var known []string
	for gk := range maps.Keys(reporters()) {
		known = append(known, gk.Kind)
	}
	slices.Sort(known)
	return console.UsageErrorf("no passage starts from %s; those that start one are %s", r.Kind().Kind, strings.Join(known, ", "))
}

func reportResource(ctx context.Context, c *connect.Cluster, r connect.Resource, q query) (account, error) {
	tell := reporters()[r.Mapping.GroupVersionKind.GroupKind()]
	told, err := tell(ctx, c.Client, r.Key, q)
	if apierrors.IsNotFound(err) {
		return account{}, r.NotFound()
	}
	return told, err
}

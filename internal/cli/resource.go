package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// resource is one that a passage starts from, as TYPE NAME name it.
type resource struct {
	mapping *meta.RESTMapping
	key     client.ObjectKey
}

func (r resource) kind() schema.GroupKind { return r.mapping.GroupVersionKind.GroupKind() }

// String names the resource as kubectl would: istio.sailoperator.io/default.
func (r resource) String() string {
	kind := strings.ToLower(r.mapping.GroupVersionKind.Kind)
	return kind + "." + r.mapping.GroupVersionKind.Group + "/" + r.key.Name
}

// notFound is what is said of one that does not exist, with the namespace in which people tend to look in vain.
func (r resource) notFound() error {
	if r.key.Namespace != "" {
		return fmt.Errorf("%s does not exist in namespace %s", r, r.key.Namespace)
	}
	return fmt.Errorf("%s does not exist", r)
}

// typeAndName reads TYPE NAME, or TYPE/NAME as kubectl prints it.
func typeAndName(args []string) (kind, name string, ok bool) {
	if len(args) == 1 {
		kind, name, _ = strings.Cut(args[0], "/")
	} else if len(args) == 2 {
		kind, name = args[0], args[1]
	}
	return kind, name, kind != "" && name != ""
}

func requireTypeAndName(cmd *cobra.Command, args []string) error {
	if _, _, ok := typeAndName(args); ok {
		return nil
	}
	// The first example of a command is one of a kind that it is for.
	example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	return usageErrorf("%s takes TYPE and NAME, such as `%s`, but got %q", cmd.CommandPath(), example, strings.Join(args, " "))
}

// resolveArgs connects, and understands the two arguments.
func (c *connection) resolveArgs(args []string) (*cluster, resource, error) {
	cluster, err := c.connect()
	if err != nil {
		return nil, resource{}, err
	}
	kind, name, _ := typeAndName(args)
	r, err := cluster.resolve(kind, name)
	return cluster, r, err
}

// report is what plan and status tell from.
func (c *connection) report(ctx context.Context, args []string, q query) (account, error) {
	cluster, r, err := c.resolveArgs(args)
	if err != nil {
		return account{}, err
	}
	return cluster.report(ctx, r, q)
}

// resolve understands TYPE as kubectl does: kind, singular, plural or short name, with or without version and group.
func (c *cluster) resolve(kind, name string) (resource, error) {
	mapping, err := mappingFor(c.mapper, kind)
	if meta.IsNoMatchError(err) {
		return resource{}, usageErrorf("the cluster has no resource type %q; if it is one of Fairlead's, "+
			"its CRDs are not installed: `fairlead crds install`", kind)
	}
	if err != nil {
		return resource{}, fmt.Errorf("look up resource type %q: %w", kind, err)
	}
	if mapping.GroupVersionKind.GroupKind() == dataplanes {
		return resource{}, usageErrorf("no passage starts from a Dataplane: which policies apply to what it calls, "+
			"`fairlead status dataplane %s -n NAMESPACE --policies` tells", name)
	}
	if _, ok := reporters()[mapping.GroupVersionKind.GroupKind()]; !ok {
		var known []string
		for gk := range maps.Keys(reporters()) {
			known = append(known, gk.Kind)
		}
		slices.Sort(known)
		return resource{}, usageErrorf("no passage starts from %s; those that start one are %s",
			mapping.GroupVersionKind.Kind, strings.Join(known, ", "))
	}
	r := resource{mapping: mapping, key: client.ObjectKey{Name: name}}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		r.key.Namespace = c.namespace
	}
	return r, nil
}

func mappingFor(mapper meta.RESTMapper, kind string) (*meta.RESTMapping, error) {
	full, group := schema.ParseResourceArg(strings.ToLower(kind))
	if full != nil {
		if gvk, err := mapper.KindFor(*full); err == nil {
			return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
	}
	gvk, err := mapper.KindFor(group.WithVersion(""))
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

func (c *cluster) report(ctx context.Context, r resource, q query) (account, error) {
	tell := reporters()[r.mapping.GroupVersionKind.GroupKind()]
	told, err := tell(ctx, c.client, r.key, q)
	if apierrors.IsNotFound(err) {
		return account{}, r.notFound()
	}
	return told, err
}

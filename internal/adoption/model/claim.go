package model

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// PolicyKey names a policy. One of the cluster has no namespace.
type PolicyKey = types.NamespacedName

// Annotations of a binding with the policy that takes its template.
const (
	AnnotationPolicyNamespace = "propagationpolicy.karmada.io/namespace"
	AnnotationPolicyName      = "propagationpolicy.karmada.io/name"
	AnnotationClusterPolicy   = "clusterpropagationpolicy.karmada.io/name"
)

// Claim records on a binding which policy takes its template; the zero Key for none.
func Claim(binding *Binding, policy PolicyKey) {
	ours := map[string]string{}
	switch {
	case policy == PolicyKey{}:
	case policy.Namespace == "":
		ours[AnnotationClusterPolicy] = policy.Name
	default:
		ours[AnnotationPolicyNamespace], ours[AnnotationPolicyName] = policy.Namespace, policy.Name
	}
	binding.SetAnnotations(MergeKeys(binding.GetAnnotations(), []string{AnnotationPolicyNamespace, AnnotationPolicyName, AnnotationClusterPolicy}, ours))
}

// ClaimOf is the policy that takes the template of a binding, the zero key if none does.
func ClaimOf(binding *Binding) PolicyKey {
	if binding == nil {
		return PolicyKey{}
	}
	annotations := binding.GetAnnotations()
	if name := annotations[AnnotationClusterPolicy]; name != "" {
		return PolicyKey{Name: name}
	}
	return PolicyKey{Namespace: annotations[AnnotationPolicyNamespace], Name: annotations[AnnotationPolicyName]}
}

// Placing is how far a placement is met.
type Placing struct {
	// Affinity is the group of clusterAffinities that is used, if any.
	Affinity string
	// Unmet holds if no clusters meet the spread constraints. The resource then stays where it is.
	Unmet bool
	// NoRoom are the replicas that the clusters have no room for, and NotReported the clusters that have not reported their room.
	// The replicas then stay where they are.
	NoRoom      int32
	NotReported []string
	// Untolerated are the clusters that the resource stays in though they have a NoExecute taint which its policy does not tolerate.
	Untolerated []string
}

// LacksRoom tells whether replicas are not placed.
func (p Placing) LacksRoom() bool { return p.NoRoom > 0 || len(p.NotReported) > 0 }

// SetPlaced records on a binding how far its placement is met.
func SetPlaced(binding *Binding, placing Placing) {
	recorded := map[string]string{}
	if placing.Affinity != "" {
		recorded[AnnotationAffinity] = placing.Affinity
	}
	if placing.Unmet {
		recorded[AnnotationUnmet] = "true"
	}
	if placing.NoRoom > 0 {
		recorded[AnnotationNoRoom] = strconv.Itoa(int(placing.NoRoom))
	}
	if len(placing.NotReported) > 0 {
		recorded[AnnotationNotReported] = strings.Join(placing.NotReported, ",")
	}
	if len(placing.Untolerated) > 0 {
		recorded[AnnotationUntolerated] = strings.Join(placing.Untolerated, ",")
	}
	binding.SetAnnotations(MergeKeys(binding.GetAnnotations(), []string{AnnotationAffinity, AnnotationUnmet, AnnotationNoRoom, AnnotationNotReported, AnnotationUntolerated}, recorded))
}

// UntoleratedNote is what there is to say of a resource that stays in tainted clusters, empty if there is nothing.
func UntoleratedNote(binding *Binding) string {
	clusters := binding.GetAnnotations()[AnnotationUntolerated]
	if clusters == "" {
		return ""
	}
	return fmt.Sprintf("the resource stays in clusters with a NoExecute taint that the policy does not tolerate: %s; Fairlead evicts nothing: "+
		"exclude the clusters in spec.placement to move the resource away", strings.ReplaceAll(clusters, ",", ", "))
}

// IndexWaiting is the index of bindings with replicas that wait for room; its only value is "true".
const IndexWaiting = "waiting"

func WaitingIndexValues(object client.Object) []string {
	annotations := object.GetAnnotations()
	if annotations[AnnotationNoRoom] == "" && annotations[AnnotationNotReported] == "" {
		return nil
	}
	return []string{"true"}
}

// ListWaiting are the bindings with replicas that wait for room.
func ListWaiting(ctx context.Context, reader client.Reader) ([]*Binding, error) {
	return ListBindings(ctx, reader, "", client.MatchingFields{IndexWaiting: "true"})
}

// NoClusterReason is why a template goes to no cluster, or stays in clusters that do not meet the spread constraints; nil if the
// placement is met.
func NoClusterReason(binding *Binding) *passage.Reason {
	var reason passage.Reason
	if binding.Spec.Placement == nil && len(Targets(binding)) == 0 && IsDeferred(binding) {
		return DeferredReason(binding)
	}
	noRoom, notReported := binding.GetAnnotations()[AnnotationNoRoom], binding.GetAnnotations()[AnnotationNotReported]
	switch unmet, clusters := binding.GetAnnotations()[AnnotationUnmet] == "true", len(Targets(binding)); {
	case unmet && clusters > 0:
		reason = passage.Because(ReasonNoCluster, "the joined clusters do not meet spec.placement.spreadConstraints of the policy, and the resource stays where it is, in %d: "+
			"change the constraints, or join clusters", clusters)
	case unmet:
		reason = passage.Because(ReasonNoCluster, "the joined clusters do not meet spec.placement.spreadConstraints of the policy: change the constraints, or join clusters")
	case notReported != "":
		reason = passage.Because(ReasonNoCluster, "clusters have not reported what room they have for pods: %s; the condition ResourcesReported of the Clusters says why; "+
			"`fairlead join NAME --member-kubeconfig FILE` grants the hub to read nodes and pods where it may not; or exclude the clusters in spec.placement. "+
			"Replicas that are placed stay where they are", strings.ReplaceAll(notReported, ",", ", "))
	case noRoom != "":
		reason = passage.Because(ReasonNoCluster, "the clusters have no room for %s of %d replicas, by their nodes and the requests of the pods: add nodes or clusters, "+
			"or lower the requests or the replicas of the template. Replicas that are placed stay where they are", noRoom, binding.Spec.Replicas)
	case clusters == 0:
		reason = passage.Because(ReasonNoCluster, "spec.placement of the policy selects none of the joined clusters")
	default:
		return nil
	}
	return &reason
}

// AffinityOf is the group of clusterAffinities that a binding uses, empty if its placement has none.
func AffinityOf(binding *Binding) string { return binding.GetAnnotations()[AnnotationAffinity] }

// SetUnsupportedFields records on a binding which fields of its policy are not supported.
func SetUnsupportedFields(binding *Binding, paths []string) {
	recorded := map[string]string{}
	if len(paths) > 0 {
		recorded[AnnotationUnsupported] = strings.Join(paths, ",")
	}
	binding.SetAnnotations(MergeKeys(binding.GetAnnotations(), []string{AnnotationUnsupported}, recorded))
}

// UnsupportedFieldsOf are the fields of the policy of a binding that are not supported.
func UnsupportedFieldsOf(binding *Binding) []string {
	recorded := binding.GetAnnotations()[AnnotationUnsupported]
	if recorded == "" {
		return nil
	}
	return strings.Split(recorded, ",")
}

// IndexPolicy is the index of bindings by the policy that takes their template.
const IndexPolicy = "claim"

func PolicyIndexValues(object client.Object) []string {
	return []string{ClaimOf(AsBinding(object)).String()}
}

// ListClaimed are the bindings of the templates that a policy takes.
func ListClaimed(ctx context.Context, reader client.Reader, policy PolicyKey) ([]*Binding, error) {
	return ListBindings(ctx, reader, policy.Namespace, client.MatchingFields{IndexPolicy: policy.String()})
}

// ListBindings lists the ResourceBindings of a namespace; without one, those of all namespaces and the ClusterResourceBindings.
func ListBindings(ctx context.Context, reader client.Reader, namespace string, by ...client.ListOption) ([]*Binding, error) {
	var all []*Binding
	var list workv1alpha2.ResourceBindingList
	by = append(by, client.UnsafeDisableDeepCopy)
	if err := reader.List(ctx, &list, append(by, client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("list ResourceBindings: %w", err)
	}
	for i := range list.Items {
		all = append(all, AsBinding(&list.Items[i]))
	}
	if namespace != "" {
		return all, nil
	}
	var ofCluster workv1alpha2.ClusterResourceBindingList
	if err := reader.List(ctx, &ofCluster, by...); err != nil {
		return nil, fmt.Errorf("list ClusterResourceBindings: %w", err)
	}
	for i := range ofCluster.Items {
		all = append(all, AsBinding(&ofCluster.Items[i]))
	}
	return all, nil
}

// TemplateKeyOf is the key of the template of a binding.
func TemplateKeyOf(b *Binding) TemplateKey { return TemplateOfBinding(b).Key() }

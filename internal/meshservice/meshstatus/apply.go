// Package meshstatus writes the status of a Mesh, of which several controllers own a part each.
package meshstatus

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// Field managers of the parts: each has a condition, and the fields that its controller sets.
const (
	Generation = "fairlead/meshservice-generation"
	VIPs       = "fairlead/meshservice-vips"
	Consumers  = "fairlead/meshservice-consumers"
	Served     = "fairlead/meshservice-served"
)

// maxMessage bounds the message of a condition, for which the API server takes 32 KiB: tenants choose some of the names in it.
const maxMessage = 4000

// Apply applies the part of an owner if it differs: a condition, and the fields that set, unless nil, sets. A Mesh that has
// changed since it was read is a conflict: the part may depend on what has changed.
func Apply(ctx context.Context, c client.Client, mesh *kumav1alpha1.Mesh, owner string, condition metav1.Condition, set func(*kumav1alpha1.MeshStatus)) (changed bool, err error) {
	var part kumav1alpha1.MeshStatus
	whole := mesh.Status.DeepCopy()
	condition.ObservedGeneration = mesh.Generation
	condition.Message = passage.Printable(condition.Message)
	if len(condition.Message) > maxMessage {
		condition.Message = strings.ToValidUTF8(condition.Message[:maxMessage], "") + "..."
	}
	meta.SetStatusCondition(&whole.Conditions, condition)
	part.Conditions = []metav1.Condition{*meta.FindStatusCondition(whole.Conditions, condition.Type)}
	if set != nil {
		set(whole)
		set(&part)
	}
	if equality.Semantic.DeepEqual(&mesh.Status, whole) {
		return false, nil
	}
	err = kube.ApplyStatusPart(ctx, c, kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.MeshKind), mesh, part, *whole, owner)
	return err == nil, err
}

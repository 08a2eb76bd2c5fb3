// Package injector has the API server play what istiod does where none runs, and make pods sick or hold them.
package injector

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// Policies of the API server itself: one plays the injector where no istiod runs, the others make pods sick or hold them.
//
//go:embed policies.yaml
var policies string

const (
	// Label on a namespace, with the value Policy, has its pods injected by the policy.
	Label  = "test.fairlead.dev/injector"
	Policy = "policy"
	// LabelSickOn on a pod names the revision on which it never becomes ready.
	LabelSickOn = "test.fairlead.dev/sick-on"
	// LabelHeldOn on a pod names the revision on which it becomes ready when the test releases it.
	LabelHeldOn = "test.fairlead.dev/held-on"
	// LabelHealed on a namespace keeps its pods from being sick.
	LabelHealed = "test.fairlead.dev/healed"
)

// Install puts the policies into a cluster, and waits until they are in force.
func Install(ctx context.Context, c client.Client) error {
	objects, err := chart.Decode(policies)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test")); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	probe := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "policies-are-in-force", Labels: map[string]string{Label: Policy, v1.LabelRevision: "some"},
	}}
	if err := c.Create(ctx, probe); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	// The API server takes a moment to heed new policies.
	return wait.Try(ctx, func(ctx context.Context) error {
		for label, value := range map[string]string{LabelSickOn: cluster.Never, LabelHeldOn: cluster.Held} {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: probe.Name, Name: "probe", Labels: map[string]string{label: "some"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
			}
			if err := c.Create(ctx, pod, client.DryRunAll); err != nil {
				return err
			}
			if pod.Annotations[v1.AnnotationRevision] != "some" || pod.Annotations[cluster.ReadyAfter] != value {
				return errors.New("policies are not in force yet")
			}
		}
		return nil
	})
}

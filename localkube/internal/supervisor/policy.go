package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/localkube/internal/component"
)

// applyPodPolicy has the API server refuse annotations that KWOK could not
// follow: it would leave such a pod as it is, without a word.
func applyPodPolicy(ctx context.Context, client kubernetes.Interface) error {
	policy := &apply.ValidatingAdmissionPolicyApplyConfiguration{}
	if err := yaml.UnmarshalStrict(component.PodPolicy, policy); err != nil {
		return err
	}
	name := *policy.Name
	binding := apply.ValidatingAdmissionPolicyBinding(name).WithSpec(
		apply.ValidatingAdmissionPolicyBindingSpec().WithPolicyName(name).WithValidationActions(admissionv1.Deny))
	options := metav1.ApplyOptions{FieldManager: Self, Force: true}
	if _, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Apply(ctx, policy, options); err != nil {
		return fmt.Errorf("apply ValidatingAdmissionPolicy %s: %w", name, err)
	}
	if _, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Apply(ctx, binding, options); err != nil {
		return fmt.Errorf("apply ValidatingAdmissionPolicyBinding %s: %w", name, err)
	}
	return nil
}

// podPolicyWorks proves it by a Deployment that must be refused, and that would
// not be made if it were not: a policy takes effect a moment after it is there.
func podPolicyWorks(ctx context.Context, client kubernetes.Interface) error {
	malformed := probe("localkube-pod-annotations", map[string]string{component.ReadyAfter: "some day"})
	_, err := client.AppsV1().Deployments(probeNamespace).Create(ctx, malformed, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) && strings.Contains(err.Error(), component.ReadyAfter) {
		return nil
	}
	return errors.Join(errors.New("a malformed annotation was not refused"), err)
}

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/localkube/internal/component"
)

const podPolicy = "localkube-pod-annotations"

// applyPodPolicy has the API server refuse annotations that KWOK could not
// follow: it would leave such a pod as it is, without a word.
func applyPodPolicy(ctx context.Context, client kubernetes.Interface) error {
	policies := client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	options := metav1.ApplyOptions{FieldManager: Self, Force: true}
	if _, err := policies.Apply(ctx, apply.ValidatingAdmissionPolicy(podPolicy).WithSpec(podPolicySpec()), options); err != nil {
		return fmt.Errorf("apply ValidatingAdmissionPolicy %s: %w", podPolicy, err)
	}
	if _, err := bindings.Apply(ctx, apply.ValidatingAdmissionPolicyBinding(podPolicy).WithSpec(
		apply.ValidatingAdmissionPolicyBindingSpec().WithPolicyName(podPolicy).WithValidationActions(admissionv1.Deny),
	), options); err != nil {
		return fmt.Errorf("apply ValidatingAdmissionPolicyBinding %s: %w", podPolicy, err)
	}
	return nil
}

func podPolicySpec() *apply.ValidatingAdmissionPolicySpecApplyConfiguration {
	rule := func(group string, resources ...string) *apply.NamedRuleWithOperationsApplyConfiguration {
		return apply.NamedRuleWithOperations().WithAPIGroups(group).WithAPIVersions("*").WithResources(resources...).
			WithOperations(admissionv1.Create, admissionv1.Update)
	}
	spec := apply.ValidatingAdmissionPolicySpec().
		WithMatchConstraints(apply.MatchResources().WithResourceRules(
			rule("", "pods"),
			rule("apps", "deployments", "replicasets", "statefulsets", "daemonsets"),
			rule("batch", "jobs"),
		)).
		WithVariables(apply.Variable().WithName("annotations").WithExpression(
			"(has(object.spec.template) ? object.spec.template : object).?metadata.?annotations.orValue({})",
		))
	for _, check := range component.AnnotationChecks() {
		spec.WithValidations(apply.Validation().WithExpression(check.Expression).WithMessage(check.Message))
	}
	return spec
}

// podPolicyWorks proves it by a Deployment that must be refused, and that would
// not be made if it were not: a policy takes effect a moment after it is there.
func podPolicyWorks(ctx context.Context, client kubernetes.Interface) error {
	labels := map[string]string{"app": podPolicy}
	_, err := client.AppsV1().Deployments(probeNamespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: podPolicy},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{component.ReadyAfter: "some day"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "localkube/probe"}}},
			},
		},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) && strings.Contains(err.Error(), component.ReadyAfter) {
		return nil
	}
	return errors.Join(errors.New("a malformed annotation was not refused"), err)
}

package operator_test

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness/chart"
)

// injector is a policy of the API server that plays the injector of all revisions in a namespace.
const injector = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s-injector}
spec:
  reinvocationPolicy: Never
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    objectSelector: {matchExpressions: [{key: istio.io/rev, operator: Exists}]}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{
          metadata: Object.metadata{annotations: {'istio.io/rev': object.metadata.labels['istio.io/rev']}},
          spec: Object.spec{containers: [Object.spec.containers{name: 'istio-proxy', image: 'proxy'}]}
        }
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s-injector}
spec: {policyName: %[1]s-injector}
`

// inject lets pods get sidecars of a revision, although nothing answers its webhook.
func (i *installation) inject(ctx context.Context, revision string) error {
	objects, err := chart.Decode(fmt.Sprintf(injector, i.namespace))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := i.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test")); err != nil {
			return fmt.Errorf("apply %s: %w", object.GetKind(), err)
		}
	}
	var list admissionv1.MutatingWebhookConfigurationList
	if err := i.List(ctx, &list, client.MatchingLabels{v1.LabelRevision: revision}); err != nil {
		return err
	}
	for n := range list.Items {
		before := list.Items[n].DeepCopy()
		ignore := admissionv1.Ignore
		for j := range list.Items[n].Webhooks {
			list.Items[n].Webhooks[j].FailurePolicy = &ignore
		}
		if err := i.Patch(ctx, &list.Items[n], client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

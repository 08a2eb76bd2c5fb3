package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// member is what the hub calls the cluster that it manages.
const member = "member"

// everyKind is one resource of each kind that the chart lets a hub read. They are in the cluster too, with another number.
const everyKind = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}, data: {number: "%[1]d"}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: shop}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: shop}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: %[1]d
  selector: {matchLabels: {app: shop}}
  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: shop, image: shop}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: shop}
spec:
  replicas: %[1]d
  selector: {matchLabels: {app: set}}
  template: {metadata: {labels: {app: set}}, spec: {containers: [{name: shop, image: shop}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: shop, image: shop}]}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: shop}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: shop}, maxReplicas: 9}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: shop}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: shop, image: shop}]}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: shop}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: shop, image: shop}]}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec: {defaultBackend: {service: {name: shop, port: {number: 80}}}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: shop}, spec: {podSelector: {}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: shop}, spec: {selector: {matchLabels: {app: shop}}}}
`

// takeoverSteps have a cluster join, take over what runs there, place a namespace by a policy of the whole hub, give all of it back,
// and have the cluster leave.
func (i *installation) takeoverSteps(t testing.TB) []storyStep {
	shop := i.namespace + "-shop"
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "shop"}}
	whole := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: shop}}
	// Namespaces do not go where no controller ends them, so each time it is another cluster.
	i.described++
	described := clusterNamed(fmt.Sprintf("%s-%d", member, i.described))
	described.Spec.APIEndpoint = "https://127.0.0.1:1"
	aborted := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, model.AnnotationAborted))
	return []storyStep{
		{"see the CRDs", func(ctx context.Context) error { return i.List(ctx, &policyv1alpha1.ClusterPropagationPolicyList{}) }},
		{"have a cluster join", i.join(t)},
		{"see it ready", func(ctx context.Context) error {
			return i.says(ctx, clusterNamed(member), clusterv1alpha1.ConditionReady)
		}},
		{"describe a cluster by hand", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(i.Create(ctx, described))
		}},
		{"see it kept until its Works are gone", func(ctx context.Context) error {
			if err := i.Get(ctx, client.ObjectKeyFromObject(described), described); err != nil {
				return err
			}
			if !controllerutil.ContainsFinalizer(described, model.FinalizerCluster) {
				return errors.New("it has no finalizer")
			}
			return i.Get(ctx, client.ObjectKey{Name: model.ExecutionNamespace(described.Name)}, &corev1.Namespace{})
		}},
		{"remove it", func(ctx context.Context) error {
			return errors.Join(client.IgnoreNotFound(i.Delete(ctx, described)), isGone(ctx, i, described))
		}},
		{"store what runs there", func(ctx context.Context) error { return i.stock(ctx, shop) }},
		{"place all", func(ctx context.Context) error { return i.place(ctx, shop) }},
		{"see it taken over", func(ctx context.Context) error { return i.says(ctx, policy, policyv1alpha1.ConditionReady) }},
		{"see the namespace taken over", func(ctx context.Context) error {
			return i.says(ctx, whole, policyv1alpha1.ConditionReady)
		}},
		{"change a resource", func(ctx context.Context) error {
			return i.Patch(ctx, &appsv1.Deployment{ObjectMeta: policy.ObjectMeta}, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`)))
		}},
		{"see it change in the cluster", i.scaled(shop, 3)},
		{"give all back", func(ctx context.Context) error {
			return errors.Join(i.Patch(ctx, policy, aborted), i.Patch(ctx, whole, aborted))
		}},
		{"see that nothing is left", i.nothingLeft},
		{"have the cluster leave", func(ctx context.Context) error {
			return errors.Join(client.IgnoreNotFound(i.Delete(ctx, clusterNamed(member))), isGone(ctx, i, clusterNamed(member)))
		}},
	}
}

func (i *installation) scaled(namespace string, replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		admin, err := harness.NewAdminClient(i.member)
		if err != nil {
			return err
		}
		var shop appsv1.Deployment
		if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop"}, &shop); err != nil {
			return err
		}
		if *shop.Spec.Replicas != replicas {
			return fmt.Errorf("it has %d replicas", *shop.Spec.Replicas)
		}
		return nil
	}
}

func clusterNamed(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (i *installation) join(t testing.TB) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := i.Get(ctx, client.ObjectKey{Name: member}, clusterNamed(member)); !apierrors.IsNotFound(err) {
			return err
		}
		if r := harness.RunCommand(t, i.hub, "join", member, "--member-kubeconfig", i.member.Kubeconfig()); r.Code != 0 {
			return errors.New(r.Stderr)
		}
		return nil
	}
}

// says waits for a condition to be true, of this version of an object.
func (i *installation) says(ctx context.Context, object client.Object, condition string) error {
	if err := i.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	var found []metav1.Condition
	switch o := object.(type) {
	case *clusterv1alpha1.Cluster:
		found = o.Status.Conditions
	case *policyv1alpha1.PropagationPolicy:
		found = o.Status.Conditions
	case *policyv1alpha1.ClusterPropagationPolicy:
		found = o.Status.Conditions
	}
	if !meta.IsStatusConditionTrue(found, condition) {
		return fmt.Errorf("%s says:%s", object.GetName(), harness.DescribeConditions(found))
	}
	return nil
}

// stock has the same resources on the hub and in the cluster, but for their number.
func (i *installation) stock(ctx context.Context, namespace string) error {
	admin, err := harness.NewAdminClient(i.member)
	if err != nil {
		return err
	}
	for number, where := range map[int]client.Client{1: admin, 2: i.Client} {
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if err := client.IgnoreAlreadyExists(where.Create(ctx, space)); err != nil {
			return err
		}
		for _, o := range resources(number) {
			o.SetNamespace(namespace)
			if err := where.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("story"), client.ForceOwnership); err != nil {
				return err
			}
		}
	}
	return nil
}

func resources(number int) []*unstructured.Unstructured {
	objects, err := chart.Decode(fmt.Sprintf(everyKind, number))
	if err != nil {
		panic(err)
	}
	return objects
}

func (i *installation) place(ctx context.Context, namespace string) error {
	policies, err := chart.Decode(fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: shop, namespace: %[1]s}
spec:
  conflictResolution: Overwrite
  resourceSelectors: []
  placement: {clusterAffinity: {clusterNames: [%[2]s]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: %[1]s}
spec:
  conflictResolution: Overwrite
  resourceSelectors: [{apiVersion: v1, kind: Namespace, name: %[1]s}]
  placement: {clusterAffinity: {clusterNames: [%[2]s]}}
`, namespace, member))
	if err != nil {
		return err
	}
	var selectors []any
	for _, r := range resources(0) {
		selectors = append(selectors, map[string]any{"apiVersion": r.GetAPIVersion(), "kind": r.GetKind(), "name": r.GetName()})
	}
	if err := unstructured.SetNestedSlice(policies[0].Object, selectors, "spec", "resourceSelectors"); err != nil {
		return err
	}
	for _, p := range policies {
		if err := client.IgnoreAlreadyExists(i.Create(ctx, p)); err != nil {
			return err
		}
	}
	return nil
}

// isToldByStatus tells whether the policy or the Cluster that needs it says what the operator may not read.
func (i *installation) isToldByStatus(ctx context.Context) bool {
	if !i.runs(model.Passage) {
		return false
	}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace + "-shop", Name: "shop"}}
	err := errors.Join(i.says(ctx, policy, policyv1alpha1.ConditionReady), i.says(ctx, clusterNamed(member), clusterv1alpha1.ConditionReady))
	return err != nil && (strings.Contains(err.Error(), "the operator may not read") || strings.Contains(err.Error(), "forbidden"))
}

// kindsOfHub are what a hub keeps, policies first.
var kindsOfHub = []schema.GroupVersionKind{
	policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"),
	policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy"),
	workv1alpha2.GroupVersion.WithKind("ResourceBinding"),
	workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"),
	workv1alpha1.GroupVersion.WithKind("Work"),
	clusterv1alpha1.GroupVersion.WithKind("Cluster"),
}

func (i *installation) nothingLeft(ctx context.Context) error {
	for _, kind := range kindsOfHub[2:5] {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := i.List(ctx, list); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%s %s is still there", kind.Kind, list.Items[0].Name)
		}
	}
	return nil
}

// forgetMember takes hub and cluster back to before the cluster joined.
func (i *installation) forgetMember(t testing.TB) {
	t.Helper()
	unprotected := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for _, kind := range kindsOfHub {
		wait.Until(t, func(ctx context.Context) error {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind)
			if err := i.List(ctx, list); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				return nil
			} else if err != nil {
				return err
			}
			var left []error
			for n := range list.Items {
				item := &list.Items[n]
				left = append(left, fmt.Errorf("%s %s is still there", kind.Kind, item.Name),
					client.IgnoreNotFound(i.Delete(ctx, item)), client.IgnoreNotFound(i.Patch(ctx, item, unprotected)))
			}
			return errors.Join(left...)
		})
	}
	for _, namespace := range []string{model.SecretNamespace, model.ExecutionNamespace(member)} {
		if err := i.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := harness.NewAdminClient(i.member)
	if err != nil {
		t.Fatal(err)
	}
	shop := i.namespace + "-shop"
	unmarked := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}
	if err := client.IgnoreNotFound(admin.Patch(t.Context(), space, unmarked)); err != nil {
		t.Fatal(err)
	}
	for _, o := range resources(0) {
		o.SetNamespace(shop)
		if err := client.IgnoreNotFound(admin.Patch(t.Context(), o, unmarked)); err != nil {
			t.Fatal(err)
		}
	}
}

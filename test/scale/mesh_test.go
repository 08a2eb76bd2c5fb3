package scale_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// The versions between which workloads go to and fro.
var versions = [2]string{"v1.24.0", "v1.26.0"}

const (
	istioName = "default"
	tagName   = "prod"
	batchSize = 20
)

func revisionOfVersion(version string) string {
	return istioName + "-" + strings.ReplaceAll(version, ".", "-")
}

// controlPlanes are made without injectors, which would all have to run, and are kept when nothing uses them: installing
// and removing them is not what is measured.
const controlPlanes = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: sailoperator.io/v1
kind: Istio
metadata: {name: default}
spec:
  version: v1.24.0
  updateStrategy:
    type: RevisionBased
    inactiveRevisionDeletionGracePeriodSeconds: 86400
    workloadMigration:
      strategy: ""
      batched: {batchSize: 20, delayBetweenBatches: 0s}
  values:
    global: {operatorManageWebhooks: true, configValidation: false}
---
apiVersion: sailoperator.io/v1
kind: IstioRevisionTag
metadata: {name: prod}
spec:
  targetRef: {kind: Istio, name: default}
`

// injector does in the API server what an injector does, as far as it matters here: new pods get a sidecar, and say of which
// revision, be it the one that a label names or the one that the tag stands for.
const injector = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: injector.scale.fairlead.dev}
spec:
  paramKind: {apiVersion: sailoperator.io/v1, kind: IstioRevisionTag}
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
  variables:
  - name: ofNamespace
    expression: "namespaceObject.metadata.?labels[?'istio.io/rev'].orValue('')"
  - name: ofPod
    expression: >-
      object.metadata.?labels[?'sidecar.istio.io/inject'].orValue('') == 'false' ? ''
      : object.metadata.?labels[?'istio.io/rev'].orValue('')
  - name: chosen
    expression: "variables.ofNamespace != '' ? variables.ofNamespace : variables.ofPod"
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        variables.chosen == '' ? Object{} : Object{
          metadata: Object.metadata{annotations: {
            'istio.io/rev': variables.chosen == params.metadata.name ? params.status.istioRevision : variables.chosen
          }},
          spec: Object.spec{containers: [Object.spec.containers{name: 'istio-proxy', image: 'proxy'}]}
        }
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: injector.scale.fairlead.dev}
spec:
  policyName: injector.scale.fairlead.dev
  paramRef: {name: prod, parameterNotFoundAction: Deny}
`

// mesh is a cluster with two control planes, many workloads and an operator, which is not always running.
type mesh struct {
	client.WithWatch
	cluster *cluster.Cluster
	kube    kubernetes.Interface
	extent  extent
	// kubeconfig is that of the operator's ServiceAccount: unlike an administrator, it has no privileges with the API
	// server's priority and fairness.
	kubeconfig string
	operator   *process
	// version is the one that workloads are to go to.
	version string
}

func newMesh(b *testing.B, size extent) *mesh {
	b.Helper()
	m := &mesh{cluster: cluster.Start(b, cluster.Options{}), extent: size, version: versions[0]}
	var err error
	if m.kube, err = kubernetes.NewForConfig(m.cluster.Config()); err != nil {
		b.Fatal(err)
	}
	if m.WithWatch, err = harness.NewAdminClient(m.cluster); err != nil {
		b.Fatal(err)
	}
	if m.kubeconfig, err = harness.InstallPermissions(b.Context(), m.cluster, m, b.TempDir()); err != nil {
		b.Fatal(err)
	}
	m.start(b)
	m.apply(b, controlPlanes)
	m.apply(b, injector)
	m.aim(b, versions[0])
	m.populate(b)
	return m
}

func (m *mesh) apply(b *testing.B, manifests string) {
	b.Helper()
	objects, err := chart.Decode(manifests)
	if err != nil {
		b.Fatal(err)
	}
	for _, object := range objects {
		if err := m.Apply(b.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("scale")); err != nil {
			b.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// config is that of the operator.
func (m *mesh) config(b *testing.B) *rest.Config {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", m.kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	return fast(config)
}

func (m *mesh) start(b *testing.B) {
	b.Helper()
	m.operator = startOperator(b, m.kubeconfig)
	until(b, time.Minute, func() bool { return strings.Contains(m.operator.Log.Since(0), `"msg":"ready"`) })
}

func (m *mesh) stop(b *testing.B) {
	b.Helper()
	m.operator.stop(b)
	m.operator = nil
}

// other is the version that workloads come from.
func (m *mesh) other() string {
	if m.version == versions[0] {
		return versions[1]
	}
	return versions[0]
}

// aim makes a version the active one, up to the moment at which workloads could move if they were told to.
func (m *mesh) aim(b *testing.B, version string) {
	b.Helper()
	if m.operator == nil {
		m.start(b)
	}
	m.change(b, fmt.Sprintf(`{"spec":{"version":%q,"updateStrategy":{"workloadMigration":{"strategy":""}}}}`, version))
	m.version = version
	var last error
	defer func() {
		if b.Failed() {
			b.Log(last)
		}
	}()
	until(b, 2*time.Minute, func() bool {
		last = errors.Join(m.active(b.Context()), m.unhook(b.Context()))
		return last == nil
	})
	m.quiet(b)
}

func (m *mesh) change(b *testing.B, patch string) {
	b.Helper()
	istio := &v1.Istio{ObjectMeta: metav1.ObjectMeta{Name: istioName}}
	if err := m.Patch(b.Context(), istio, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		b.Fatalf("change the Istio: %v", err)
	}
}

// active is why workloads could not move yet.
func (m *mesh) active(ctx context.Context) error {
	var istio v1.Istio
	if err := m.Get(ctx, client.ObjectKey{Name: istioName}, &istio); err != nil {
		return err
	}
	want := revisionOfVersion(m.version)
	if istio.Status.ObservedGeneration < istio.Generation || istio.Status.ActiveRevisionName != want {
		return fmt.Errorf("%s is the active revision, want %s", istio.Status.ActiveRevisionName, want)
	}
	if istio.Status.WorkloadMigration != nil {
		return errors.New("a migration is still told of")
	}
	var revision v1.IstioRevision
	if err := m.Get(ctx, client.ObjectKey{Name: want}, &revision); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(revision.Status.Conditions, string(v1.ConditionReady)) {
		return fmt.Errorf("%s is not ready: %+v", want, revision.Status.Conditions)
	}
	var tag v1.IstioRevisionTag
	if err := m.Get(ctx, client.ObjectKey{Name: tagName}, &tag); err != nil {
		return err
	}
	if tag.Status.IstioRevision != want {
		return fmt.Errorf("the tag stands for %q, want %s", tag.Status.IstioRevision, want)
	}
	return nil
}

// unhook lets pods be made although no injector answers for the tag.
func (m *mesh) unhook(ctx context.Context) error {
	var list admissionv1.MutatingWebhookConfigurationList
	if err := m.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		configuration := &list.Items[i]
		before := configuration.DeepCopy()
		ignore := admissionv1.Ignore
		for j := range configuration.Webhooks {
			configuration.Webhooks[j].FailurePolicy = &ignore
		}
		if err := m.Patch(ctx, configuration, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("switch off %s: %w", configuration.Name, err)
		}
	}
	return nil
}

// whereabouts fails the benchmark unless every pod got its sidecar from the version that workloads were to go to.
func (m *mesh) whereabouts(b *testing.B) {
	b.Helper()
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := m.List(b.Context(), pods, client.HasLabels{workloadLabel}); err != nil {
		b.Fatal(err)
	}
	count := map[string]int{}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil {
			count[pod.Annotations[v1.AnnotationRevision]]++
		}
	}
	if want := revisionOfVersion(m.version); count[want] != m.extent.pods() || len(count) != 1 {
		b.Fatalf("pods by revision: %v, want all %d on %s", count, m.extent.pods(), want)
	}
}

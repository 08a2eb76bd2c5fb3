package operator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// ownFinalizers are those that Fairlead sets.
var ownFinalizers = []string{"fairlead.dev/uninstall", "fairlead.dev/cluster", "karmada.io/binding-controller", "karmada.io/execution-controller"}

// leaving is the chart in a cluster with objects of every passage.
type leaving struct {
	*installation
	*cluster.Cluster
	// prefix of the names of all that runs the environment.
	prefix string
}

const objectsOfAll = `
apiVersion: sailoperator.io/v1
kind: Istio
metadata: {name: default}
spec:
  version: v1.24.0
  namespace: NAMESPACE
  updateStrategy: {type: RevisionBased, defaultTag: true}
---
apiVersion: materialize.cloud/v1alpha2
kind: Materialize
metadata: {name: mz, namespace: NAMESPACE}
spec: {environmentdImageRef: "materialize/environmentd:v1", backendSecretName: backend}
---
apiVersion: kuma.io/v1alpha1
kind: Mesh
metadata: {name: default}
---
# A cluster that is gone for good.
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: lost}
spec: {syncMode: Push, apiEndpoint: "https://127.0.0.1:1", secretRef: {namespace: karmada-cluster, name: lost}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NAMESPACE}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: settings, namespace: NAMESPACE}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: settings}]
  placement: {clusterAffinity: {clusterNames: [lost]}}
`

// TestUninstall leaves twice: while the operator runs, and after it is gone with its chart. What runs goes on, no finalizer is left,
// and the CRDs can be deleted.
func TestUninstall(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{KeepNamespaces: true})
	l := &leaving{installation: install(t, c, "revision", "adoption", "rollout", "meshservice"), Cluster: c}
	run := func() *process {
		p := l.start(t, startRecorder(t, c.Config()).kubeconfigFor(t, l.token(t, "fairlead")), harness.Lease())
		p.leading(t)
		return p
	}
	p := run()
	objects, err := chart.Decode(strings.ReplaceAll(objectsOfAll, "NAMESPACE", l.namespace))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := l.Create(t.Context(), object); err != nil {
			t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	wait.Until(t, l.works)
	before := l.pods(t)

	dry := harness.RunCommand(t, c, "uninstall", "--dry-run")
	if dry.Code != 0 || !strings.Contains(dry.Stdout, "Nothing was changed.") {
		t.Fatalf("dry run: %+v", dry)
	}
	for _, kind := range []string{"IstioRevision", "IstioRevisionTag", "Work", "ResourceBinding", "Cluster", "Materialize", "Mesh"} {
		if !strings.Contains(dry.Stdout, " "+kind+" ") {
			t.Errorf("the dry run does not list %s:\n%s", kind, dry.Stdout)
		}
	}
	t.Logf("%s", dry.Stdout)
	if err := l.works(t.Context()); err != nil {
		t.Errorf("after the dry run: %v", err)
	}

	// The operator runs: it is scaled down, and waited for.
	command := harness.StartCommand(t, c, "uninstall", "--yes", "--timeout", wait.Deadline().String())
	wait.Until(t, func(context.Context) error {
		if said := command.Stderr.Since(0); !strings.Contains(said, "waiting until operator ") || !strings.Contains(said, "kube-system/fairlead-revision") {
			return fmt.Errorf("it does not wait yet: %s", said)
		}
		return nil
	})
	var deployment appsv1.Deployment
	if err := l.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "fairlead"}, &deployment); err != nil || *deployment.Spec.Replicas != 0 {
		t.Errorf("the Deployment of the operator has %d replicas: %v", *deployment.Spec.Replicas, err)
	}
	if held := l.held(t); len(held) == 0 {
		t.Error("finalizers were removed while the operator runs")
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("the operator ended with %d", code)
	}
	l.left(t, command.Wait(), before)

	// Installed again, it goes on. Then it dies, the chart is uninstalled, and a revision waits for it in vain.
	p = run()
	wait.Until(t, l.works)
	p.Kill()
	for _, object := range l.release.Objects {
		if object.GetKind() == "Namespace" {
			continue
		}
		if err := client.IgnoreNotFound(l.Delete(t.Context(), object.DeepCopy())); err != nil {
			t.Fatal(err)
		}
	}
	revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-v1-24-0"}}
	if err := l.Delete(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	l.left(t, harness.RunCommand(t, c, "uninstall", "--yes", "--timeout", wait.Deadline().String()), before)
	if err := isGone(t.Context(), l, revision); err != nil {
		t.Error(err)
	}
	l.deleteCRDs(t)
	l.runs(t, before)
}

// works waits until every passage has done its part, and holds what it has to.
func (l *leaving) works(ctx context.Context) error {
	istio := &v1.Istio{}
	if err := isReported(ctx, l, "default", v1.StateHealthy, istio); err != nil {
		return err
	}
	m := &v1alpha2.Materialize{}
	if err := l.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: "mz"}, m); err != nil {
		return err
	}
	if m.Status.ActiveGeneration != 1 || m.Status.LastCompletedRolloutHash != m.Status.RequestedRolloutHash || m.Status.RequestedRolloutHash == "" {
		return fmt.Errorf("Materialize mz: %+v", m.Status)
	}
	l.prefix = "mz" + m.Status.ResourceID
	for _, workload := range l.workloads() {
		if err := l.Get(ctx, client.ObjectKeyFromObject(workload), workload); err != nil {
			return err
		}
		if len(workload.GetOwnerReferences()) == 0 {
			return fmt.Errorf("%s has no owner", workload.GetName())
		}
		if !hasAllPods(workload) {
			return fmt.Errorf("%s does not have all of its pods yet", workload.GetName())
		}
	}
	held, err := l.findHeld(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []string{"IstioRevision", "IstioRevisionTag", "Work", "ResourceBinding", "Cluster"} {
		if !slices.ContainsFunc(held, func(one string) bool { return strings.HasPrefix(one, kind+" ") }) {
			return fmt.Errorf("no finalizer on any %s: %v", kind, held)
		}
	}
	return nil
}

// workloads are those that the passages have installed.
func (l *leaving) workloads() []client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: l.namespace, Name: name} }
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: named("istiod-default-v1-24-0")},
		&appsv1.StatefulSet{ObjectMeta: named(l.prefix + "-environmentd-1")},
		// These come after the rollout.
		&appsv1.Deployment{ObjectMeta: named(l.prefix + "-balancerd")},
		&appsv1.Deployment{ObjectMeta: named(l.prefix + "-console")},
	}
}

// hasAllPods tells whether a workload has the pods that it asks for, and no others: then none comes later.
func hasAllPods(workload client.Object) bool {
	var want, all, updated int32
	var observed int64
	switch w := workload.(type) {
	case *appsv1.Deployment:
		want, all, updated, observed = *w.Spec.Replicas, w.Status.Replicas, w.Status.UpdatedReplicas, w.Status.ObservedGeneration
	case *appsv1.StatefulSet:
		want, all, updated, observed = *w.Spec.Replicas, w.Status.Replicas, w.Status.UpdatedReplicas, w.Status.ObservedGeneration
	}
	return observed == workload.GetGeneration() && all == want && updated == want
}

// pods are the UIDs of all that are not being deleted, but for the operator's.
func (l *leaving) pods(t testing.TB) map[string]string {
	t.Helper()
	var list corev1.PodList
	if err := l.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for _, pod := range list.Items {
		if pod.Labels["app.kubernetes.io/name"] != "fairlead" && pod.DeletionTimestamp == nil {
			uids[pod.Namespace+"/"+pod.Name] = string(pod.UID)
		}
	}
	if len(uids) < 2 {
		t.Errorf("only these pods run: %v", uids)
	}
	return uids
}

// findHeld are the objects with a finalizer of Fairlead.
func (l *leaving) findHeld(ctx context.Context) ([]string, error) {
	var held []string
	for _, kind := range []string{
		"sailoperator.io/v1 IstioRevision", "sailoperator.io/v1 IstioRevisionTag", "work.karmada.io/v1alpha1 Work",
		"work.karmada.io/v1alpha2 ResourceBinding", "cluster.karmada.io/v1alpha1 Cluster",
	} {
		version, name, _ := strings.Cut(kind, " ")
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, name+"List"))
		if err := l.List(ctx, list); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			if slices.ContainsFunc(item.Finalizers, func(f string) bool { return slices.Contains(ownFinalizers, f) }) {
				held = append(held, name+" "+item.Name)
			}
		}
	}
	return held, nil
}

func (l *leaving) held(t testing.TB) []string {
	t.Helper()
	held, err := l.findHeld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// left checks what the command leaves behind.
func (l *leaving) left(t testing.TB, r harness.CommandResult, before map[string]string) {
	t.Helper()
	if r.Code != 0 || !strings.Contains(r.Stdout, "kubectl delete crd istios.sailoperator.io") {
		t.Fatalf("uninstall: %+v", r)
	}
	t.Logf("%s%s", r.Stderr, r.Stdout)
	if held := l.held(t); len(held) > 0 {
		t.Errorf("finalizers are left on %v", held)
	}
	for _, passage := range operator.Names() {
		if err := isGone(t.Context(), l, leaseOfPassage(passage)); err != nil {
			t.Error(err)
		}
	}
	// The one for older versions, of an operator that has led here.
	if err := isGone(t.Context(), l, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "fairlead"}}); err != nil {
		t.Error(err)
	}
	l.runs(t, before)
}

// runs checks that what ran still does, and has no owner that could go.
func (l *leaving) runs(t testing.TB, before map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, l.pods(t)); diff != "" {
		t.Errorf("pods (-before +now):\n%s", diff)
	}
	for _, workload := range l.workloads() {
		if err := l.Get(t.Context(), client.ObjectKeyFromObject(workload), workload); err != nil {
			t.Error(err)
		}
		if owners := workload.GetOwnerReferences(); len(owners) > 0 || workload.GetDeletionTimestamp() != nil {
			t.Errorf("%s has the owners %v, and is deleted at %v", workload.GetName(), owners, workload.GetDeletionTimestamp())
		}
	}
}

// deleteCRDs waits until all of Fairlead's are gone.
func (l *leaving) deleteCRDs(t testing.TB) {
	t.Helper()
	for _, passage := range operator.Passages() {
		for _, name := range passage.CRDs {
			crd := &unstructured.Unstructured{}
			crd.SetAPIVersion("apiextensions.k8s.io/v1")
			crd.SetKind("CustomResourceDefinition")
			crd.SetName(name)
			if err := client.IgnoreNotFound(l.Delete(t.Context(), crd)); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, func(ctx context.Context) error {
				if err := l.Get(ctx, client.ObjectKey{Name: name}, crd); !apierrors.IsNotFound(err) {
					return fmt.Errorf("CRD %s is still there: %v", name, err)
				}
				return nil
			})
		}
	}
}

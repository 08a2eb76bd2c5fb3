package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// crashNamespace is the same in every telling, for the names of Works depend on it.
const crashNamespace = "crash"

// fragile is a hub with a member whose operator can be killed at any write, on the hub and in the member.
type fragile struct{ hub, member *site }

// TestCrashAtEveryWrite kills the operator at the writes of a takeover of three objects: at some of them, or at every one in
// full, which takes minutes.
func TestCrashAtEveryWrite(t *testing.T) {
	w := secondHub(t)
	f := &fragile{hub: w.hub, member: w.members[member1]}
	for _, s := range []*site{f.hub, f.member} {
		if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crashNamespace}}); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	f.connect(t)
	faults.DisturbEveryWrite(t, faults.Scenario{
		Config: f.hub.Config(), Setup: f.tell, Pick: faults.Sample(12, faults.To("secrets")),
	}, faults.Kills()...)
}

// connect runs an operator until all that it reports on the new Cluster is written: only the first one writes that.
func (f *fragile) connect(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- runAdoption(ctx, f.hub.Config()) }()
	wait.Until(t, f.synced)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func (f *fragile) synced(ctx context.Context) error {
	var c clusterv1alpha1.Cluster
	if err := f.hub.Get(ctx, client.ObjectKey{Name: member1}, &c); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionSynced) {
		return fmt.Errorf("the Cluster says %+v", c.Status)
	}
	return nil
}

// ownedObjects are a ServiceAccount and a ConfigMap, which are not the same on the hub and in the member, and a Service, which
// is. No controller of the member writes to any of them.
func ownedObjects(version string) []client.Object {
	named := metav1.ObjectMeta{Namespace: crashNamespace, Name: "cart"}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: named, AutomountServiceAccountToken: ptr.To(version == "2")},
		&corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"version": version}},
		&corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "cart"}, Ports: []corev1.ServicePort{{Port: 80}}}},
	}
}

func crashPolicy() *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: crashNamespace, Name: "all"},
		Spec: policyv1alpha1.PropagationSpec{
			ConflictResolution: policyv1alpha1.ConflictOverwrite, Placement: to(member1),
			ResourceSelectors: []policyv1alpha1.ResourceSelector{
				{APIVersion: "v1", Kind: "ServiceAccount", Name: "cart"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "cart"},
				{APIVersion: "v1", Kind: "Service"},
			},
		},
	}
}

// tell is one telling of the story.
func (f *fragile) tell(t testing.TB) faults.World {
	t.Helper()
	for _, object := range ownedObjects("1") {
		if err := f.member.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range append(ownedObjects("2"), crashPolicy()) {
		if err := f.hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return faults.World{Run: runAdoption, Settled: f.settled, Snapshot: f.snapshot, Teardown: func() { f.forget(t) }}
}

// runAdoption is an operator, until the context ends.
func runAdoption(ctx context.Context, config *rest.Config) error {
	options := operator.DefaultOptions()
	options.Passages = []string{"adoption"}
	options.InstallCRDs, options.LeaderElection = false, false
	options.HealthProbeBindAddress, options.MetricsBindAddress, options.Webhook.BindAddress = "0", "0", "0"
	return operator.Run(ctx, config, options, logr.Discard())
}

func (f *fragile) settled(ctx context.Context) error {
	p := crashPolicy()
	if err := f.hub.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(p.Status.Conditions, policyv1alpha1.ConditionReady) || p.Status.Applied != 3 {
		return fmt.Errorf("the policy says %+v", p.Status)
	}
	return nil
}

// snapshot is what there is on the hub, with what was kept to undo it, and in the member.
func (f *fragile) snapshot(ctx context.Context) (map[string]string, error) {
	core := func(kind string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(kind) }
	all, err := faults.Dump{
		Kinds: []schema.GroupVersionKind{
			policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"), workv1alpha2.GroupVersion.WithKind("ResourceBinding"),
			workv1alpha1.GroupVersion.WithKind("Work"),
		},
		Scrub: scrubHub,
	}.Snapshot(ctx, f.hub)
	if err != nil {
		return nil, err
	}
	records, err := faults.Dump{
		Kinds: []schema.GroupVersionKind{core("Secret")}, In: []client.ListOption{client.HasLabels{"fairlead.dev/undo"}}, Scrub: scrubRecord,
	}.Snapshot(ctx, f.hub)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, records)
	objects, err := faults.Dump{
		Kinds: []schema.GroupVersionKind{core("ServiceAccount"), core("ConfigMap"), core("Service")},
		In:    []client.ListOption{client.InNamespace(crashNamespace), client.HasLabels{"karmada.io/managed"}}, Scrub: scrubMember,
	}.Snapshot(ctx, f.member)
	if err != nil {
		return nil, err
	}
	for key, text := range objects {
		all[member1+": "+key] = text
	}
	return all, nil
}

// scrubHub removes what differs by nature: which object something was made for, and what its content amounts to with that.
func scrubHub(object *unstructured.Unstructured) {
	for _, path := range [][]string{
		{"metadata", "managedFields"}, {"metadata", "labels", "fairlead.dev/binding"}, {"spec", "resource", "uid"}, {"metadata", "generation"},
		{"status", "observedGeneration"},
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	statuses, _, _ := unstructured.NestedSlice(object.Object, "status", "manifestStatuses")
	for _, s := range statuses {
		if status, ok := s.(map[string]any); ok {
			delete(status, "resourceVersion")
			delete(status, "writtenObject")
		}
	}
	if statuses != nil {
		_ = unstructured.SetNestedSlice(object.Object, statuses, "status", "manifestStatuses")
	}
}

func scrubRecord(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "metadata", "ownerReferences")
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	for key := range data {
		data[key] = "something"
	}
	_ = unstructured.SetNestedMap(object.Object, data, "data")
}

func scrubMember(object *unstructured.Unstructured) {
	for _, path := range [][]string{
		{"metadata", "managedFields"}, {"metadata", "labels", "fairlead.dev/work"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"status"},
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
}

// forget removes everything, whoever waits for it.
func (f *fragile) forget(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	var errs []error
	for _, object := range append(ownedObjects("2"), crashPolicy()) {
		errs = append(errs, client.IgnoreNotFound(f.hub.Delete(ctx, object)))
	}
	var bindings workv1alpha2.ResourceBindingList
	var works workv1alpha1.WorkList
	errs = append(errs, f.hub.List(ctx, &bindings), f.hub.List(ctx, &works))
	for i := range bindings.Items {
		b := &bindings.Items[i]
		errs = append(errs, client.IgnoreNotFound(f.hub.Patch(ctx, b, free)), client.IgnoreNotFound(f.hub.Delete(ctx, b)))
	}
	for i := range works.Items {
		w := &works.Items[i]
		errs = append(errs, client.IgnoreNotFound(f.hub.Patch(ctx, w, free)), client.IgnoreNotFound(f.hub.Delete(ctx, w)))
	}
	errs = append(errs, f.hub.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("karmada-es-"+member1), client.HasLabels{"fairlead.dev/undo"}))
	for _, object := range ownedObjects("1") {
		errs = append(errs, client.IgnoreNotFound(f.member.Delete(ctx, object)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/launch"
)

// crashNamespace is the same in every telling, for the names of Works depend on it.
const crashNamespace = "crash"

// fragile is a hub with two members whose operator can be killed at any write, on the hub and in the members.
type fragile struct {
	hub     *site
	members map[string]*site
}

// TestCrashAtEveryWrite kills the operator at the writes of a takeover of three objects in two clusters: at some of them, or
// at every one in full, which takes minutes.
func TestCrashAtEveryWrite(t *testing.T) {
	f := newFragile(t)
	faults.DisturbEveryWrite(t, faults.Scenario{
		Config: f.hub.Config(), Timeout: 2 * patience, Setup: f.tell,
		Pick: faults.Sample(9, faults.To("secrets")),
	}, faults.Kills()...)
}

func newFragile(t *testing.T) *fragile {
	t.Helper()
	own := func() *site {
		s, err := newSite(cluster.Start(t, cluster.Options{Profile: "hub"}))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crashNamespace}}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	f := &fragile{hub: own(), members: map[string]*site{member1: own(), member2: own()}}
	if _, err := crds.Install(t.Context(), f.hub.Config(), crds.Options{Log: logr.Discard()}); err != nil {
		t.Fatal(err)
	}
	for name, m := range f.members {
		if r := launch.Command(t, f.hub.Cluster, "join", name, "--member-kubeconfig", m.Kubeconfig()); r.Code != 0 {
			t.Fatal(r.Stderr)
		}
		if err := launch.Aggregate(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// belongings are a Deployment and a ConfigMap, which are not the same on the hub and in the members, and a Service, which is.
func belongings(version string) []client.Object {
	named := metav1.ObjectMeta{Namespace: crashNamespace, Name: "cart"}
	labels := map[string]string{"app": "cart"}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "cart", Image: "cart:" + version}}},
			},
		}},
		&corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"version": version}},
		&corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}},
	}
}

func crashPolicy() *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: crashNamespace, Name: "all"},
		Spec: policyv1alpha1.PropagationSpec{
			ConflictResolution: policyv1alpha1.ConflictOverwrite,
			ResourceSelectors: []policyv1alpha1.ResourceSelector{
				{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "cart"}, {APIVersion: "v1", Kind: "Service"},
			},
		},
	}
}

// tell is one telling of the story.
func (f *fragile) tell(t testing.TB) faults.World {
	t.Helper()
	for _, m := range f.members {
		for _, object := range belongings("1") {
			if err := m.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, object := range append(belongings("2"), crashPolicy()) {
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

// snapshot is what there is on the hub, with what was kept to undo it, and in the members.
func (f *fragile) snapshot(ctx context.Context) (map[string]string, error) {
	apps := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
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
	for name, m := range f.members {
		objects, err := faults.Dump{
			Kinds: []schema.GroupVersionKind{apps, core("ConfigMap"), core("Service")},
			In:    []client.ListOption{client.InNamespace(crashNamespace)}, Scrub: scrubMember,
		}.Snapshot(ctx, m)
		if err != nil {
			return nil, err
		}
		for key, text := range objects {
			all[name+": "+key] = text
		}
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
	for _, object := range append(belongings("2"), crashPolicy()) {
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
	for name, m := range f.members {
		errs = append(errs, f.hub.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("karmada-es-"+name), client.HasLabels{"fairlead.dev/undo"}))
		for _, object := range belongings("1") {
			errs = append(errs, client.IgnoreNotFound(m.Delete(ctx, object)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

package inventory

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// following is a Tracker that follows events.
type following struct {
	*Tracker
	changes          int
	last             Change
	namespaces, pods *controllertest.FakeInformer
	deployments      *informer

	statefulSets, daemonSets, cronJobs *controllertest.FakeInformer
}

// informer lets a test tell of what no object is left of.
type informer struct {
	*controllertest.FakeInformer
	handler toolscache.ResourceEventHandler
}

func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handler = h
	return i.FakeInformer.AddEventHandler(h)
}

func follow(t *testing.T) *following {
	f := &following{
		namespaces:  controllertest.NewFakeInformer(controllertest.Synced),
		pods:        controllertest.NewFakeInformer(controllertest.Synced),
		deployments: &informer{FakeInformer: controllertest.NewFakeInformer(controllertest.Synced)},

		statefulSets: controllertest.NewFakeInformer(controllertest.Synced),
		daemonSets:   controllertest.NewFakeInformer(controllertest.Synced),
		cronJobs:     controllertest.NewFakeInformer(controllertest.Synced),
	}
	f.Tracker = New(func(change Change) { f.changes++; f.last = change })
	synced, err := f.Watch(context.Background(), informers{following: f}, informers{following: f})
	if err != nil {
		t.Fatal(err)
	}
	if !synced() {
		t.Fatal("it is not synced, though all of its informers are")
	}
	return f
}

// informers is a cache that has nothing else.
type informers struct {
	cache.Cache
	*following
}

func (i informers) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	switch object.GetObjectKind().GroupVersionKind().Kind {
	case kindNamespace:
		return i.namespaces, nil
	case kindPod:
		return i.pods, nil
	}
	switch object.(type) {
	case *appsv1.StatefulSet:
		return i.statefulSets, nil
	case *appsv1.DaemonSet:
		return i.daemonSets, nil
	case *batchv1.CronJob:
		return i.cronJobs, nil
	}
	return i.deployments, nil
}

// changed tells how many changes a Snapshot would show of what was done.
func (f *following) changed(do func()) int {
	before := f.changes
	do()
	return f.changes - before
}

func makeNamespace(name, revision string, version int) *metav1.PartialObjectMetadata {
	ns := usage.MetadataOf(kindNamespace)
	ns.Name, ns.UID, ns.ResourceVersion = name, types.UID("uid-of-"+name), fmt.Sprint(version)
	ns.Labels = map[string]string{v1.LabelRevision: revision, "team": "red"}
	return ns
}

func makeDeployment(name, mark string, version int) *appsv1.Deployment {
	in, name, _ := strings.Cut(name, "/")
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in, Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: fmt.Sprint(version), Generation: int64(version),
			Annotations: map[string]string{v1.AnnotationMigration: mark, "note": "long"},
		},
	}
}

// makePod is a pod of a workload: "Deployment/cart", "StatefulSet/db", or of none.
func makePod(name, owner, revision string) *metav1.PartialObjectMetadata {
	pod := usage.MetadataOf(kindPod)
	pod.Namespace, pod.Name = "shop", name
	if revision != "" {
		pod.Annotations = map[string]string{v1.AnnotationRevision: revision}
	}
	kind, of, owned := strings.Cut(owner, "/")
	reference := metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: of, Controller: ptr.To(true)}
	if kind == kindDeployment {
		pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "5d4f8"}
		reference.Kind, reference.Name = "ReplicaSet", of+"-5d4f8"
	}
	if owned {
		pod.OwnerReferences = []metav1.OwnerReference{reference}
	}
	return pod
}

func terminating(pod *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	pod.DeletionTimestamp = &metav1.Time{}
	return pod
}

var cart = Owner{"apps/v1", "Deployment", "shop", "cart"}

// marks are the names of the Deployments in a snapshot, and what was written down on them.
func marks(p Snapshot) []string {
	var all []string
	for _, d := range p.Workloads {
		all = append(all, d.Namespace+"/"+d.Name+"="+d.Annotations[v1.AnnotationMigration])
	}
	return all
}

func expect[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestOwnWriteComesBeforeItsEvent(t *testing.T) {
	f := follow(t)
	f.deployments.Add(makeDeployment("shop/cart", "", 10))
	f.namespaces.Add(makeNamespace("shop", "old", 10))

	f.ObserveWrite(makeDeployment("shop/cart", "moved", 12))
	f.ObserveNamespaceWrite(makeNamespace("shop", "new", 12))
	check := func(when string) {
		t.Helper()
		expect(t, when, []string{"shop/cart=moved"}, marks(f.Snapshot()))
		expect(t, when, "new", f.Snapshot().Namespaces["shop"].Labels[v1.LabelRevision])
	}
	check("written")
	if n := f.changed(func() {
		f.deployments.Update(nil, makeDeployment("shop/cart", "", 11))
		f.namespaces.Update(nil, makeNamespace("shop", "old", 11))
	}); n != 0 {
		t.Errorf("events from before the write are %d changes", n)
	}
	check("after events from before the write")
	if n := f.changed(func() {
		f.deployments.Update(nil, makeDeployment("shop/cart", "moved", 12))
		f.namespaces.Update(nil, makeNamespace("shop", "new", 12))
	}); n != 0 {
		t.Errorf("events of the write itself are %d changes", n)
	}
	check("after the events of the write")

	f.deployments.Update(nil, makeDeployment("shop/cart", "edited", 13))
	f.namespaces.Update(nil, makeNamespace("shop", "other", 100))
	expect(t, "after later events", []string{"shop/cart=edited"}, marks(f.Snapshot()))
	expect(t, "after later events", "other", f.Snapshot().Namespaces["shop"].Labels[v1.LabelRevision])
}

func TestNoGhosts(t *testing.T) {
	f := follow(t)
	f.deployments.Add(makeDeployment("shop/cart", "", 10))
	f.namespaces.Add(makeNamespace("shop", "old", 10))
	f.deployments.Delete(makeDeployment("shop/cart", "", 11))
	f.namespaces.Delete(makeNamespace("shop", "old", 11))
	f.ObserveWrite(makeDeployment("shop/cart", "moved", 12))
	f.ObserveNamespaceWrite(makeNamespace("shop", "new", 12))
	if p := f.Snapshot(); len(p.Workloads) > 0 || len(p.Namespaces) > 0 {
		t.Errorf("what was deleted before our write came back is there: %v, %v", p.Workloads, p.Namespaces)
	}

	again := makeDeployment("shop/cart", "", 5)
	again.UID = "another"
	f.deployments.Add(again)
	f.ObserveWrite(makeDeployment("shop/cart", "moved", 12))
	expect(t, "a new one of the same name", []string{"shop/cart="}, marks(f.Snapshot()))

	// A deletion that was missed is told of by a name alone.
	f.deployments.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "shop/cart"})
	expect(t, "after a deletion that was missed", nil, marks(f.Snapshot()))
}

// A new object of the same name is believed, whatever its version.
func TestReplacedObject(t *testing.T) {
	f := follow(t)
	f.deployments.Add(makeDeployment("shop/cart", "old", 10))
	f.namespaces.Add(makeNamespace("shop", "old", 10))
	again := makeDeployment("shop/cart", "", 4)
	again.UID = "another"
	ns := makeNamespace("shop", "new", 4)
	ns.UID = "another"
	f.deployments.Update(nil, again)
	f.namespaces.Update(nil, ns)
	expect(t, "Deployments", []string{"shop/cart="}, marks(f.Snapshot()))
	expect(t, "namespace", Namespace{Labels: map[string]string{v1.LabelRevision: "new"}, UID: "another", ResourceVersion: "4"}, f.Snapshot().Namespaces["shop"])
}

func TestPods(t *testing.T) {
	cases := map[string]struct {
		events func(f *following)
		want   map[Owner]Pods
	}{
		"by revision": {
			func(f *following) {
				f.pods.Add(makePod("a", "Deployment/cart", "old"))
				f.pods.Add(makePod("b", "Deployment/cart", "new"))
				f.pods.Add(makePod("c", "Deployment/cart", "old"))
				f.pods.Add(makePod("d", "Deployment/cart", ""))
			},
			map[Owner]Pods{cart: {"old": 2, "new": 1, "": 1}},
		},
		"by workload": {
			func(f *following) {
				f.pods.Add(makePod("a", "Deployment/cart", "old"))
				f.pods.Add(makePod("b", "StatefulSet/db", "old"))
				f.pods.Add(makePod("c", "DaemonSet/agent", "old"))
				f.pods.Add(makePod("d", "ReplicaSet/alone", "old"))
				f.pods.Add(makePod("e", "", "old"))
			},
			map[Owner]Pods{
				cart:                                     {"old": 1},
				{"apps/v1", "StatefulSet", "shop", "db"}: {"old": 1},
				{"apps/v1", "DaemonSet", "shop", "agent"}:  {"old": 1},
				{"apps/v1", "ReplicaSet", "shop", "alone"}: {"old": 1},
				{"v1", "Pod", "shop", "e"}:                 {"old": 1},
			},
		},
		"terminating ones do not count": {
			func(f *following) {
				f.pods.Add(makePod("a", "Deployment/cart", "old"))
				f.pods.Add(makePod("b", "Deployment/cart", "new"))
				f.pods.Update(nil, terminating(makePod("a", "Deployment/cart", "old")))
				f.pods.Add(terminating(makePod("c", "Deployment/cart", "old")))
			},
			map[Owner]Pods{cart: {"new": 1}},
		},
		"gone": {
			func(f *following) {
				f.pods.Add(makePod("a", "Deployment/cart", "old"))
				f.pods.Update(nil, terminating(makePod("a", "Deployment/cart", "old")))
				f.pods.Delete(makePod("a", "Deployment/cart", "old"))
				f.pods.Delete(makePod("never-seen", "Deployment/cart", "old"))
			},
			map[Owner]Pods{},
		},
		"replaced under the same name": {
			func(f *following) {
				f.pods.Add(makePod("db-0", "StatefulSet/db", "old"))
				f.pods.Update(nil, makePod("db-0", "StatefulSet/db", "new"))
			},
			map[Owner]Pods{{"apps/v1", "StatefulSet", "shop", "db"}: {"new": 1}},
		},
		"taken over by another workload": {
			func(f *following) {
				f.pods.Add(makePod("a", "", "old"))
				f.pods.Update(nil, makePod("a", "Deployment/cart", "old"))
			},
			map[Owner]Pods{cart: {"old": 1}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := follow(t)
			tc.events(f)
			expect(t, "pods", tc.want, f.Snapshot().Pods)
		})
	}
}

// What events tell later does not change a snapshot that somebody still looks at.
func TestPictureStaysAsItWas(t *testing.T) {
	f := follow(t)
	f.namespaces.Add(makeNamespace("shop", "old", 1))
	f.deployments.Add(makeDeployment("shop/cart", "", 1))
	f.deployments.Add(makeDeployment("shop/pay", "", 1))
	f.pods.Add(makePod("a", "Deployment/cart", "old"))
	before := f.Snapshot()
	copied := Snapshot{Namespaces: map[string]Namespace{}, Pods: map[Owner]Pods{}, Samples: maps.Clone(before.Samples), CronJobs: map[types.NamespacedName]map[string]string{}}
	for name, ns := range before.Namespaces {
		copied.Namespaces[name] = ns
	}
	for _, w := range before.Workloads {
		c := *w
		w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
		copied.Workloads = append(copied.Workloads, &c)
	}
	for w, pods := range before.Pods {
		copied.Pods[w] = Pods{}
		for revision, n := range pods {
			copied.Pods[w][revision] = n
		}
	}

	f.namespaces.Update(nil, makeNamespace("shop", "new", 2))
	f.namespaces.Add(makeNamespace("web", "new", 2))
	f.deployments.Update(nil, makeDeployment("shop/cart", "moved", 2))
	f.ObserveWrite(makeDeployment("shop/cart", "failed", 3))
	f.deployments.Delete(makeDeployment("shop/pay", "", 2))
	f.deployments.Add(makeDeployment("shop/an", "", 2))
	f.pods.Add(makePod("b", "Deployment/cart", "new"))
	f.pods.Delete(makePod("a", "Deployment/cart", "old"))
	expect(t, "the snapshot of before", copied, before)

	now := f.Snapshot()
	expect(t, "Deployments now, in their order", []string{"shop/an=", "shop/cart=failed"}, marks(now))
	expect(t, "pods now", map[Owner]Pods{cart: {"new": 1}}, now.Pods)
	expect(t, "namespaces now", 2, len(now.Namespaces))
}

func TestOrder(t *testing.T) {
	f := follow(t)
	for _, name := range []string{"web/a", "shop/z", "a-b/x", "a/y", "shop/b"} {
		f.deployments.Add(makeDeployment(name, "", 1))
	}
	expect(t, "by namespace and name", []string{"a/y=", "a-b/x=", "shop/b=", "shop/z=", "web/a="}, marks(f.Snapshot()))
}

// Only what a snapshot shows is a change: everything else must not wake anybody up.
func TestChanges(t *testing.T) {
	f := follow(t)
	d := makeDeployment("shop/cart", "", 1)
	f.deployments.Add(d)
	f.namespaces.Add(makeNamespace("shop", "old", 1))
	f.pods.Add(makePod("a", "Deployment/cart", "old"))
	cases := []struct {
		name  string
		event func()
		want  int
	}{
		{"a label that nobody reads", func() {
			later := d.DeepCopy()
			later.ResourceVersion, later.Labels = "2", map[string]string{"team": "red"}
			f.deployments.Update(nil, later)
		}, 0},
		{"its managed fields, and other conditions", func() {
			later := d.DeepCopy()
			later.ResourceVersion = "3"
			later.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
			later.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
			f.deployments.Update(nil, later)
		}, 0},
		{"a replica", func() {
			later := d.DeepCopy()
			later.ResourceVersion, later.Status.ReadyReplicas = "4", 1
			f.deployments.Update(nil, later)
		}, 1},
		{"the same again", func() {
			later := d.DeepCopy()
			later.ResourceVersion, later.Status.ReadyReplicas = "4", 1
			f.deployments.Update(nil, later)
		}, 0},
		{"a label of a namespace that nobody reads", func() {
			ns := makeNamespace("shop", "old", 2)
			ns.Labels["team"] = "blue"
			f.namespaces.Update(nil, ns)
		}, 0},
		{"the label of a namespace", func() { f.namespaces.Update(nil, makeNamespace("shop", "new", 3)) }, 1},
		{"a pod that says the same", func() { f.pods.Update(nil, makePod("a", "Deployment/cart", "old")) }, 0},
		{"a pod that goes", func() { f.pods.Delete(makePod("a", "Deployment/cart", "old")) }, 1},
		{"a Deployment that goes", func() { f.deployments.Delete(d) }, 1},
	}
	for _, tc := range cases {
		if got := f.changed(tc.event); got != tc.want {
			t.Errorf("%s: %d changes, want %d", tc.name, got, tc.want)
		}
	}
}

// TestSlim keeps all that decides, and nothing else: a cluster has thousands.
func TestSlim(t *testing.T) {
	progressing := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", Message: "long",
	}
	full := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "cart", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.Unix(1, 0),
			Labels: map[string]string{"app": "cart"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			Annotations: map[string]string{
				v1.AnnotationMigration: "m", v1.AnnotationSkipMigration: "s", v1.AnnotationReadinessTimeout: "t",
				v1.AnnotationMigrationBatch: "b", "kubectl.kubernetes.io/last-applied-configuration": "long",
			},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Paused: true, Selector: &metav1.LabelSelector{},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      map[string]string{v1.LabelRevision: "r", v1.LabelSidecarInject: "true", v1.LabelInjection: "enabled", "app": "cart"},
					Annotations: map[string]string{v1.LabelSidecarInject: "false", v1.AnnotationRestartedAt: "now"},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
			},
		},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 3, Replicas: 4, UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, UnavailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable}, progressing},
		},
	}
	want := &Workload{
		Kind: "Deployment",
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "cart", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.Unix(1, 0),
			Annotations: map[string]string{
				v1.AnnotationMigration: "m", v1.AnnotationSkipMigration: "s", v1.AnnotationReadinessTimeout: "t", v1.AnnotationMigrationBatch: "b",
			},
		},
		PodLabels:      map[string]string{v1.LabelRevision: "r", v1.LabelSidecarInject: "true", v1.LabelInjection: "enabled"},
		PodAnnotations: map[string]string{v1.LabelSidecarInject: "false"},
		Replicas:       3, Paused: true,
		Rollout: Rollout{
			ObservedGeneration: 3, Replicas: 4, Updated: 3, Ready: 2, Available: 1,
			Progressing: &Progressing{Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	expect(t, "slim", want, From(full))
	for object, options := range CacheOptions() {
		if _, ok := object.(*appsv1.Deployment); !ok {
			continue // which the package usage trims
		}
		got, err := options.Transform(full)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "in the cache", any(want), got)
		if again, err := options.Transform(got); err != nil || again != got {
			t.Errorf("transformed twice, it becomes %v, %v", again, err)
		}
		if got, err := options.Transform("something else"); err != nil || got != "something else" {
			t.Errorf("something else becomes %v, %v", got, err)
		}
	}
}

package usage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestUsesAreSeen(t *testing.T) {
	s := newWorld(t)
	revision, tag := s.name("rev"), s.name("tag")
	first, second := s.Namespace(t), s.Namespace(t)
	if first > second {
		first, second = second, first
	}
	s.revision(revision, "nothing refers to this name")
	s.tag(tag, "nothing refers to this name")

	t.Log("a namespace is labelled before there are pods")
	s.label(namespaceNamed(first), v1.LabelRevision, tag)
	s.tag(tag, "1 namespace: Namespace "+first)
	s.revision(revision, "nothing refers to this name")

	t.Log("pods are injected")
	s.create(runningPod(first, "cart", "", revision))
	s.create(runningPod(second, "till", v1.LabelRevision+"="+revision, ""))
	s.revision(revision, fmt.Sprintf("2 pods: Pod %s/cart, Pod %s/till", first, second))
	s.tag(revision, fmt.Sprintf("1 pod: Pod %s/till", second))

	t.Log("a namespace decides, and no longer its pods")
	s.label(namespaceNamed(second), v1.LabelInjection, v1.InjectionDisabled)
	s.revision(revision, fmt.Sprintf("1 pod: Pod %s/cart", first))
	s.label(namespaceNamed(second), v1.LabelInjection, "")
	s.revision(revision, fmt.Sprintf("2 pods: Pod %s/cart, Pod %s/till", first, second))

	t.Log("tags point to the revision")
	fixed := makeTag(s.name("fixed"), "IstioRevision/"+revision)
	fixed.Finalizers = []string{"test.fairlead.dev/hold"}
	s.create(fixed)
	floating := makeTag(tag, "Istio/"+revision)
	s.create(floating)
	floating.Status.IstioRevision = revision
	if err := s.Status().Update(t.Context(), floating); err != nil {
		t.Fatal(err)
	}
	s.revision(revision, fmt.Sprintf("2 tags and 2 pods: IstioRevisionTag %s, IstioRevisionTag %s, Pod %s/cart, Pod %s/till",
		fixed.Name, tag, first, second))

	t.Log("pods end, and are still there")
	s.phase(first, "cart", corev1.PodSucceeded)
	s.revision(revision, fmt.Sprintf("2 tags and 1 pod: IstioRevisionTag %s, IstioRevisionTag %s, Pod %s/till", fixed.Name, tag, second))
	s.phase(second, "till", corev1.PodFailed)
	s.revision(revision, fmt.Sprintf("2 tags: IstioRevisionTag %s, IstioRevisionTag %s", fixed.Name, tag))
	for _, key := range []client.ObjectKey{{Namespace: first, Name: "cart"}, {Namespace: second, Name: "till"}} {
		if err := s.Get(t.Context(), key, &corev1.Pod{}); err != nil {
			t.Errorf("the pod itself should be there: %v", err)
		}
		if err := s.cache.Get(t.Context(), key, usage.MetadataOf("Pod")); !apierrors.IsNotFound(err) {
			t.Errorf("a pod that ended is cached: %v", err)
		}
	}

	t.Log("tags are deleted: one stays until its finalizer goes")
	s.delete(floating)
	s.delete(fixed)
	s.revision(revision, "1 tag: IstioRevisionTag "+fixed.Name)
	s.tag(tag, "1 namespace: Namespace "+first)
	s.release(fixed)
	s.revision(revision, "nothing refers to this name")

	t.Log("the annotation of a running pod changes")
	s.create(runningPod(second, "new", v1.LabelSidecarInject+"=false", ""))
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1.AnnotationRevision, revision))
	if err := s.Patch(t.Context(), podNamed(second, "new"), patch); err != nil {
		t.Fatal(err)
	}
	s.revision(revision, fmt.Sprintf("1 pod: Pod %s/new", second))
	s.delete(podNamed(second, "new"))
	s.revision(revision, "nothing refers to this name")
}

func TestCacheHoldsOnlyWhatIsRead(t *testing.T) {
	s := newWorld(t)
	namespace := s.Namespace(t)
	pod := runningPod(namespace, "cart", "istio.io/rev=r1,istio-injection=enabled,sidecar.istio.io/inject=true,app=cart", "r1")
	pod.Annotations["example.org/note"] = strings.Repeat("long ", 100)
	pod.Finalizers = []string{"test.fairlead.dev/hold"}
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "1"},
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cart-5d", UID: "2", Controller: ptr.To(true)},
	}
	s.create(pod)
	t.Cleanup(func() { s.release(pod) })

	want := usage.MetadataOf("Pod")
	want.ObjectMeta = metav1.ObjectMeta{
		Namespace: namespace, Name: "cart", UID: pod.UID,
		Labels:          labelled("istio.io/rev=r1,istio-injection=enabled,sidecar.istio.io/inject=true"),
		Annotations:     map[string]string{v1.AnnotationRevision: "r1"},
		OwnerReferences: pod.OwnerReferences[1:],
	}
	got := usage.MetadataOf("Pod")
	s.eventually(func() error { return s.cache.Get(t.Context(), client.ObjectKeyFromObject(pod), got) })
	if got.ResourceVersion == "" {
		t.Error("the resource version is gone")
	}
	// The owner that does not exist is missed sooner or later.
	got.ResourceVersion, got.DeletionTimestamp = "", nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	plain := usage.MetadataOf("Namespace")
	s.eventually(func() error { return s.cache.Get(t.Context(), client.ObjectKey{Name: namespace}, plain) })
	if plain.UID == "" || plain.Labels != nil || plain.ManagedFields != nil {
		t.Errorf("the namespace is cached as %+v", plain)
	}
}

// A controller hears of names that come into use or out of it, and reads from the tracker who uses them.
func TestControllerIsEnqueued(t *testing.T) {
	s := newWorld(t)
	reported := make(chan reconcile.Request, 100)
	mgr, err := ctrl.NewManager(s.Config(), ctrl.Options{
		Scheme:     s.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{ByObject: usage.TemplateCacheOptions(usage.CacheOptions())},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	tracker, err := usage.NewTracker(t.Context(), mgr.GetCache(), mgr.GetCache(), mgr.GetCache())
	if err != nil {
		t.Fatal(err)
	}
	uses := &startedSource{SyncingSource: tracker.Source().(source.SyncingSource), started: make(chan struct{})}
	err = ctrl.NewControllerManagedBy(mgr).Named("usage").WatchesRawSource(uses).
		Complete(reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
			if !tracker.HasSynced() {
				t.Error("started before all was known")
			}
			reported <- request
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	s.run(mgr.Start)
	select {
	case <-uses.started:
	case <-time.After(wait.Deadline()):
		t.Fatal("the controller does not start its source")
	}

	tag := s.name("tag")
	namespace := s.Namespace(t)
	s.label(namespaceNamed(namespace), v1.LabelRevision, tag)
	hears := func() {
		t.Helper()
		for late := time.After(wait.Deadline()); ; {
			select {
			case request := <-reported:
				if request.Name == tag {
					return
				}
			case <-late:
				t.Fatalf("not told of %s", tag)
			}
		}
	}
	hears()
	if got, want := tracker.Tag(tag).String(), "1 namespace: Namespace "+namespace; got != want {
		t.Errorf("told of %s, want %s", got, want)
	}
	s.label(namespaceNamed(namespace), v1.LabelRevision, "")
	hears()
	if tracker.Tag(tag).Used() {
		t.Errorf("told of %s", tracker.Tag(tag))
	}
}

// startedSource tells when a controller listens to it.
type startedSource struct {
	source.SyncingSource
	started chan struct{}
}

func (s *startedSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	defer close(s.started)
	return s.SyncingSource.Start(ctx, queue)
}

func TestSurveyPages(t *testing.T) {
	s := newWorld(t)
	tag := s.name("tag")
	var want []usage.Reference
	for i := range 4 {
		name := fmt.Sprintf("%s-%d", tag, i)
		s.create(makeTag(name, "IstioRevision/"+tag))
		want = append(want, usage.Reference{Kind: v1.IstioRevisionTagKind, Name: name, By: "spec.targetRef"})
	}
	small := &smallPages{Reader: s.Client}
	snapshot, err := usage.List(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, snapshot.References(tag)); diff != "" {
		t.Error(diff)
	}
	if small.tagPages < 2 {
		t.Errorf("%d pages of tags, 2 tags each: want at least 2", small.tagPages)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := usage.List(ctx, s.Client); err == nil || !strings.HasPrefix(err.Error(), "list every Namespace to track usage: ") {
		t.Errorf("cannot read: %v", err)
	}
}

// smallPages asks for two objects at a time.
type smallPages struct {
	client.Reader
	tagPages int
}

func (s *smallPages) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1.IstioRevisionTagList); ok {
		s.tagPages++
	}
	return s.Reader.List(ctx, list, append(options, client.Limit(2))...)
}

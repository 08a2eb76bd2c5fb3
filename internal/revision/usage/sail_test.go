package usage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/test/cluster"
)

// sail is a tracker on the shared cluster.
type sail struct {
	t *testing.T
	*cluster.Cluster
	client.Client
	cache   cache.Cache
	tracker *Tracker
}

func setSail(t *testing.T) *sail {
	c := cluster.Shared(t)
	if _, err := crds.Install(t.Context(), c.Config(), crds.Options{}); err != nil {
		t.Fatal(err)
	}
	// The operator's scheme knows no Pods: metadata needs none.
	mine, all := runtime.NewScheme(), runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		func(*runtime.Scheme) error { return v1.AddToScheme(mine) },
		v1.AddToScheme, corev1.AddToScheme,
	} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	s := &sail{t: t, Cluster: c}
	var err error
	if s.Client, err = client.New(c.Config(), client.Options{Scheme: all}); err != nil {
		t.Fatal(err)
	}
	s.cache, err = cache.New(c.Config(), cache.Options{
		Scheme:   mine,
		ByObject: CacheOptions(),
		// Whatever else is in the cache, this must not hide users.
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{v1.LabelPassage: v1.PassageRevision}),
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	tags, err := cache.New(c.Config(), cache.Options{Scheme: mine})
	if err != nil {
		t.Fatal(err)
	}
	if s.tracker, err = NewTracker(t.Context(), s.cache, tags); err != nil {
		t.Fatal(err)
	}
	if s.tracker.HasSynced() {
		t.Error("synced before the cache was started")
	}
	s.run(s.cache.Start)
	s.run(tags.Start)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.tracker.waitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// run keeps something going until the test ends.
func (s *sail) run(start func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

func (s *sail) name(prefix string) string { return prefix + "-" + cluster.Name(s.t)[:20] }

func (s *sail) revision(name, want string) {
	s.t.Helper()
	s.shows(want, func() Usage { return s.tracker.Revision(name) })
	snapshot := s.survey()
	if diff := cmp.Diff(s.tracker.Revision(name), snapshot.Revision(name)); diff != "" {
		s.t.Errorf("a survey does not agree:\n%s", diff)
	}
	if diff := cmp.Diff(s.tracker.References(name), snapshot.References(name)); diff != "" {
		s.t.Errorf("a survey does not agree:\n%s", diff)
	}
}

func (s *sail) tag(name, want string) {
	s.t.Helper()
	s.shows(want, func() Usage { return s.tracker.Tag(name) })
	snapshot := s.survey()
	if diff := cmp.Diff(s.tracker.Tag(name), snapshot.Tag(name)); diff != "" {
		s.t.Errorf("a survey does not agree:\n%s", diff)
	}
	if diff := cmp.Diff(s.tracker.TagReferences(name), snapshot.TagReferences(name)); diff != "" {
		s.t.Errorf("a survey does not agree:\n%s", diff)
	}
}

func (s *sail) survey() *Snapshot {
	s.t.Helper()
	snapshot, err := Survey(s.t.Context(), s.Client)
	if err != nil {
		s.t.Fatal(err)
	}
	return snapshot
}

func (s *sail) shows(want string, usage func() Usage) {
	s.t.Helper()
	s.eventually(func() error {
		if got := usage().String(); got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
}

func (s *sail) eventually(check func() error) {
	s.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.t.Context(), 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		s.t.Fatal(last)
	}
}

func (s *sail) create(object client.Object) {
	s.t.Helper()
	// A pod is refused until its namespace has a service account.
	s.eventually(func() error { return s.Create(s.t.Context(), object) })
	s.t.Cleanup(func() { _ = s.Delete(context.Background(), object, client.GracePeriodSeconds(0)) })
}

func (s *sail) delete(object client.Object) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
		s.t.Fatal(err)
	}
}

// label sets a label, or removes it when the value is empty.
func (s *sail) label(object client.Object, key, value string) {
	s.t.Helper()
	quoted := "null"
	if value != "" {
		quoted = fmt.Sprintf("%q", value)
	}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, key, quoted))
	if err := s.Patch(s.t.Context(), object, patch); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sail) release(object client.Object) {
	s.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := s.Patch(context.Background(), object, patch); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sail) phase(namespace, name string, phase corev1.PodPhase) {
	s.t.Helper()
	// The kubelet's part may be writing at the same time.
	s.eventually(func() error {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))
		return s.Status().Patch(s.t.Context(), podNamed(namespace, name), patch)
	})
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func podNamed(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func runningPod(namespace, name, with, revision string) *corev1.Pod {
	pod := podNamed(namespace, name)
	meta := makePod(namespace, name, with, revision)
	pod.Labels, pod.Annotations = meta.Labels, meta.Annotations
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.org/app"}}
	return pod
}

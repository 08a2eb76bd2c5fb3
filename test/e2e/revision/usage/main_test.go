// Package usage_test follows who uses revisions and tags in a cluster.
package usage_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// Nothing runs in a hub, so pods stay in the phase that a test gives them.
func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, cluster.Options{Profile: "hub"}))
}

// world is a tracker on the shared cluster.
type world struct {
	t *testing.T
	*cluster.Cluster
	client.Client
	cache   cache.Cache
	tracker *usage.Tracker
}

func newWorld(t *testing.T) *world {
	c := cluster.Shared(t)
	if _, err := crds.Install(t.Context(), c.Config(), crds.Options{Timeout: wait.Deadline()}); err != nil {
		t.Fatal(err)
	}
	// The operator's scheme knows no Pods: metadata needs none.
	mine, err := operator.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme,
	} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	s := &world{t: t, Cluster: c}
	if s.Client, err = client.New(c.Config(), client.Options{Scheme: all}); err != nil {
		t.Fatal(err)
	}
	// The API server takes a moment to tell of the kinds of new CRDs.
	wait.Until(t, func(ctx context.Context) error { return s.List(ctx, &v1.IstioRevisionTagList{}) })
	s.cache, err = cache.New(c.Config(), cache.Options{
		Scheme:   mine,
		ByObject: usage.TemplateCacheOptions(usage.CacheOptions()),
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
	if s.tracker, err = usage.NewTracker(t.Context(), s.cache, s.cache, tags); err != nil {
		t.Fatal(err)
	}
	if s.tracker.HasSynced() {
		t.Error("synced before the cache was started")
	}
	s.run(s.cache.Start)
	s.run(tags.Start)
	ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline())
	defer cancel()
	if err := s.tracker.Source().(source.SyncingSource).WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// run keeps something going until the test ends.
func (s *world) run(start func(context.Context) error) {
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

// name is one that no other test uses, and short.
func (s *world) name(prefix string) string {
	name := cluster.Name(s.t)
	return prefix + "-" + name[max(0, len(name)-20):]
}

func (s *world) revision(name, want string) {
	s.t.Helper()
	s.shows(want, func() usage.Usage { return s.tracker.Revision(name) })
	snapshot := s.survey()
	if diff := cmp.Diff(s.tracker.Revision(name), snapshot.Revision(name)); diff != "" {
		s.t.Errorf("a survey does not agree:\n%s", diff)
	}
	if diff := cmp.Diff(s.tracker.References(name), snapshot.References(name)); diff != "" {
		s.t.Errorf("a survey does not agree:\n%s", diff)
	}
}

func (s *world) tag(name, want string) {
	s.t.Helper()
	s.shows(want, func() usage.Usage { return s.tracker.Tag(name) })
	snapshot := s.survey()
	if diff := cmp.Diff(s.tracker.Tag(name), snapshot.Tag(name)); diff != "" {
		s.t.Errorf("a survey does not agree:\n%s", diff)
	}
	if diff := cmp.Diff(s.tracker.TagReferences(name), snapshot.TagReferences(name)); diff != "" {
		s.t.Errorf("a survey does not agree:\n%s", diff)
	}
}

func (s *world) survey() *usage.Tracker {
	s.t.Helper()
	snapshot, err := usage.List(s.t.Context(), s.Client)
	if err != nil {
		s.t.Fatal(err)
	}
	return snapshot
}

func (s *world) shows(want string, usage func() usage.Usage) {
	s.t.Helper()
	s.eventually(func() error {
		if got := usage().String(); got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
}

func (s *world) eventually(check func() error) {
	s.t.Helper()
	wait.Until(s.t, func(context.Context) error { return check() })
}

func (s *world) create(object client.Object) {
	s.t.Helper()
	if err := s.Create(s.t.Context(), object); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.Delete(context.Background(), object, client.GracePeriodSeconds(0)) })
}

func (s *world) delete(object client.Object) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
		s.t.Fatal(err)
	}
}

// label sets a label, or removes it when the value is empty.
func (s *world) label(object client.Object, key, value string) {
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

func (s *world) release(object client.Object) {
	s.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := s.Patch(context.Background(), object, patch); err != nil {
		s.t.Fatal(err)
	}
}

func (s *world) orphan(object client.Object) {
	s.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"ownerReferences":null}}`))
	if err := s.Patch(s.t.Context(), object, patch); err != nil {
		s.t.Fatal(err)
	}
}

func (s *world) phase(namespace, name string, phase corev1.PodPhase) {
	s.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))
	if err := s.Status().Patch(s.t.Context(), podNamed(namespace, name), patch); err != nil {
		s.t.Fatal(err)
	}
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func podNamed(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func runningPod(namespace, name, with, revision string) *corev1.Pod {
	pod := podNamed(namespace, name)
	pod.Labels = labelled(with)
	if revision != "" {
		pod.Annotations = map[string]string{v1.AnnotationRevision: revision}
	}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.org/app"}}
	return pod
}

// labelled has labels as kubectl takes them: "istio.io/rev=prod,istio-injection=enabled".
func labelled(text string) map[string]string {
	parsed := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			parsed[key] = value
		}
	}
	return parsed
}

// makeTag takes the kind and name of its target as "Istio/default".
func makeTag(name, target string) *v1.IstioRevisionTag {
	kind, of, _ := strings.Cut(target, "/")
	return &v1.IstioRevisionTag{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.IstioRevisionTagSpec{TargetRef: v1.TargetReference{Kind: kind, Name: of}},
	}
}

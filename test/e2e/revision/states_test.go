package revision_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// states are revisions and tags, each in a state of its own, on a hub with an operator whose charts come from a Helm
// repository.
type states struct {
	*world
	t      testing.TB // of all subtests, which share the operator
	server *httptest.Server
	flags  []string
	all    []state

	healthy *v1.IstioRevision
	tag     *v1.IstioRevisionTag // leads to the healthy one
}

type state struct {
	object client.Object
	kind   v1.ConditionType
	reason v1.Reason
}

// The operator itself is looked at here: what it does, and does not do, with Helm and with the API server, whatever states
// its objects are in.
func TestEveryState(t *testing.T) {
	t.Parallel()
	s := &states{world: newHub(t), t: t, server: serveCharts(t, "v1.24.0", "v1.26.0", "v1.31.0")}
	s.flags = []string{"--chart-repository", s.server.URL, "--chart-cache-dir", t.TempDir(), "--install-crds=false", harness.Scrapable}
	before := s.everything(t)
	s.operate(s.t, s.flags...)
	s.keepServing(t)
	s.make(t)
	s.deleteRefused(t)
	t.Run("use never runs Helm", s.useNeverRunsHelm)
	t.Run("CRDs are restored", s.restoresCRDs)
	t.Run("a restart writes nothing", s.restartWritesNothing)
	t.Run("charts outlive their repository", s.outlivesRepository)
	t.Run("nothing is left but CRDs", func(t *testing.T) { s.leavesNothing(t, before) })
}

// make brings everything into its state.
func (s *states) make(t *testing.T) {
	s.helmInstall(t, types.NamespacedName{Namespace: hubNamespace, Name: "theirs"}, "v1.26.0", "istiod", map[string]any{"revision": "owned"})
	with := func(name string, values v1.Values) *v1.IstioRevision {
		revision := makeRevision(name, hubNamespace, "v1.26.0")
		revision.Spec.Values = values
		return revision
	}
	s.healthy, s.tag = makeRevision("by-hand", hubNamespace, "v1.26.0"), makeTag("fixed", v1.IstioRevisionKind, "by-hand")
	paused := makeRevision("paused", hubNamespace, "v1.26.0")
	paused.Annotations = map[string]string{fairlead.AnnotationPaused: "true"}
	// The oldest is the one that would look after what all share: it must not keep the others waiting.
	s.all = []state{
		{with("unrenderable", v1.Values{"profile": "nonsense"}), v1.ConditionReconciled, v1.ReasonTemplateError},
		{with("refused", v1.Values{"affinity": "x"}), v1.ConditionReconciled, v1.ReasonRefused},
		{s.healthy, v1.ConditionReady, v1.ReasonIstiodReady},
		// The newest that there is in the repository, with the newest CRDs.
		{inPlace("default", hubNamespace, ""), v1.ConditionReady, v1.ReasonIstiodReady},
		{revisionBased("based", hubNamespace, "v1.26.0", 0), v1.ConditionReady, v1.ReasonIstiodReady},
		{with("unready", unready()), v1.ConditionReady, v1.ReasonIstiodNotReady},
		{makeRevision("owned", hubNamespace, "v1.26.0"), v1.ConditionReconciled, v1.ReasonOwnedByOthers},
		{makeRevision("unknown", hubNamespace, "v1.25.0"), v1.ConditionReconciled, v1.ReasonVersionNotFound},
		{makeRevision("nowhere", "missing", "v1.26.0"), v1.ConditionReconciled, v1.ReasonNamespaceNotFound},
		{paused, v1.ConditionReconciled, v1.ReasonPaused},
		{makeTag("floating", v1.IstioKind, "based"), v1.ConditionReconciled, v1.ReasonReconciled},
		{s.tag, v1.ConditionReconciled, v1.ReasonReconciled},
		{makeTag("waiting", v1.IstioRevisionKind, "unready"), v1.ConditionReconciled, v1.ReasonIstiodNotReady},
		{makeTag("dangling", v1.IstioRevisionKind, "nobody"), v1.ConditionReconciled, v1.ReasonRefNotFound},
	}
	for _, one := range s.all {
		s.world.make(t, one.object)
	}
	for _, one := range s.all {
		says(t, s.world, one.object, one.kind, one.reason)
	}
	// Only now, for a revision that is as old as a tag has the name only if it has been installed.
	taken := makeTag(s.healthy.Name, v1.IstioKind, "default")
	s.world.make(t, taken)
	says(t, s.world, taken, v1.ConditionReconciled, v1.ReasonNameAlreadyExists)
	s.all = append(s.all, state{taken, v1.ConditionReconciled, v1.ReasonNameAlreadyExists})
	// An operator whose cache has not seen the failed record yet tries once more, which is a pending record.
	wait.Until(t, func(ctx context.Context) error {
		releases, err := s.releases(ctx, hubNamespace)
		if releases["default-istiod"] != "deployed v1.31.0" || releases["refused-istiod"] != "failed v1.26.0" {
			err = errors.Join(err, fmt.Errorf("the releases are %v", releases))
		}
		return err
	})
}

// deleteRefused deletes the revision that the API server refused: the operator retries it every 5 minutes, which would change
// the counts that the subtests compare.
func (s *states) deleteRefused(t *testing.T) {
	s.all = slices.DeleteFunc(s.all, func(one state) bool {
		if one.reason != v1.ReasonRefused {
			return false
		}
		s.delete(t, one.object)
		wait.Until(t, func(ctx context.Context) error { return s.isGone(ctx, one.object) })
		return true
	})
}

// useNeverRunsHelm: who uses a revision has nothing to do with how it is installed, and what could not be installed is not
// tried again.
func (s *states) useNeverRunsHelm(t *testing.T) {
	used := []*v1.IstioRevision{s.all[0].object.(*v1.IstioRevision), s.healthy}
	s.world.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pods"}})
	s.operator.rest(t)
	before := s.operator.helmOperations(t)

	label := func(namespace client.Object, value string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, v1.LabelRevision, value))
		if err := s.Patch(t.Context(), namespace, patch); err != nil {
			t.Fatal(err)
		}
	}
	var namespaces []client.Object
	for i := range 18 {
		name := used[i%len(used)].Name
		pod := makePod("pods", fmt.Sprint("pod-", i))
		// Injected earlier: here, no istiod answers a webhook.
		pod.Annotations = map[string]string{v1.AnnotationRevision: name}
		wait.Until(t, func(ctx context.Context) error { return client.IgnoreAlreadyExists(s.Create(ctx, pod)) })
		if i%5 == 0 {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("team-", i)}}
			s.world.make(t, namespace)
			label(namespace, fmt.Sprintf("%q", []string{name, s.tag.Name}[i%2]))
			namespaces = append(namespaces, namespace)
		}
	}
	for _, revision := range used {
		says(t, s.world, revision, v1.ConditionInUse, v1.ReasonReferencedByWorkloads)
	}
	says(t, s.world, s.tag, v1.ConditionInUse, v1.ReasonReferencedByWorkloads)

	if err := s.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("pods"), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range namespaces {
		label(namespace, "null")
	}
	says(t, s.world, used[0], v1.ConditionInUse, v1.ReasonNotReferencedByAnything)
	says(t, s.world, s.healthy, v1.ConditionInUse, v1.ReasonReferencedByTag)
	says(t, s.world, s.tag, v1.ConditionInUse, v1.ReasonNotReferencedByAnything)

	s.operator.rest(t)
	if diff := cmp.Diff(before, s.operator.helmOperations(t)); diff != "" {
		t.Errorf("what was done with Helm went (-before +after):\n%s", diff)
	}
}

func (s *states) crd(name string) installed {
	return installed{s.world, customs, client.ObjectKey{Name: name}}
}

// restoresCRDs: Istio's CRDs are kept as the charts bring them.
func (s *states) restoresCRDs(t *testing.T) {
	edited, deleted := s.crd("gateways.networking.istio.io"), s.crd("sidecars.networking.istio.io")
	before := map[installed]map[string]any{}
	for _, object := range []installed{edited, deleted} {
		live, err := object.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before[object] = content(live)
	}
	edited.edit(t, set(nil, "metadata", "labels", "app.kubernetes.io/part-of"))
	edited.edit(t, set(nil, "spec", "names", "shortNames"))
	live, err := deleted.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.delete(t, live)
	for object, want := range before {
		object.becomes(t, want)
	}
	// Of the newest charts only.
	if _, err := s.crd("trafficextensions.extensions.istio.io").get(t.Context()); err != nil {
		t.Error(err)
	}
}

// restartWritesNothing starts an operator over everything that another one has left as it should be.
func (s *states) restartWritesNothing(t *testing.T) {
	s.operator.rest(t)
	s.operator.Kill()
	s.operate(s.t, s.flags...)
	s.operator.rest(t)
	all, err := s.operator.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	requests := starting(all, "rest_client_requests_total")
	if len(requests) == 0 {
		t.Error("the operator does not count its requests")
	}
	for name := range requests {
		if !strings.Contains(name, `method="GET"`) {
			t.Errorf("it has written: %s %v\n%s", name, requests[name], s.operator.Log.Since(0))
		}
	}
}

// outlivesRepository: charts come from what was kept of the repository when it is gone.
func (s *states) outlivesRepository(t *testing.T) {
	s.server.Close()
	s.operator.Kill()
	s.operate(s.t, s.flags...)
	second, unknown := makeRevision("second", hubNamespace, "v1.26.0"), makeRevision("unheard-of", hubNamespace, "v1.24.0")
	s.world.make(t, second, unknown)
	ready(t, s.world, second)
	got := says(t, s.world, unknown, v1.ConditionReconciled, v1.ReasonChartsUnavailable)
	if !strings.Contains(got.Message, strings.TrimPrefix(s.server.URL, "http://")) || !strings.Contains(got.Message, "check --chart-repository") {
		t.Errorf("it says %s", got.Message)
	}
	ready(t, s.world, s.healthy)
	s.all = append(s.all, state{object: second}, state{object: unknown})
}

// leavesNothing: whatever state an object is in, it takes along all that was installed for it but for Istio's CRDs, which
// hold what users have written.
func (s *states) leavesNothing(t *testing.T, before []string) {
	for _, one := range s.all {
		if err := s.Delete(t.Context(), one.object); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range s.all {
		wait.Until(t, func(ctx context.Context) error { return s.isGone(ctx, one.object) })
	}
	wait.Until(t, func(ctx context.Context) error {
		releases, err := s.releases(ctx, hubNamespace)
		if len(releases) > 0 {
			err = errors.Join(err, fmt.Errorf("left are the releases %v", slices.Sorted(maps.Keys(releases))))
		}
		return err
	})
	known := map[string]bool{}
	for _, name := range before {
		known[name] = true
	}
	left := slices.DeleteFunc(s.everything(t), func(name string) bool { return known[name] })
	if len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	for _, name := range []string{"gateways.networking.istio.io", "sidecars.networking.istio.io", "trafficextensions.extensions.istio.io"} {
		if _, err := s.crd(name).get(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// everything names all objects of the hub but Istio's CRDs, what Kubernetes makes in its own time, and what the test has
// made itself.
func (s *states) everything(t *testing.T) []string {
	t.Helper()
	names, err := s.inventory(t.Context(), func(kind string, o client.Object) bool {
		ofIstio := kind == customs.Kind && strings.HasSuffix(o.GetName(), ".istio.io")
		// In each namespace, for each Service, and when the API server and the controller manager have started.
		usual := slices.Contains([]string{"kube-root-ca.crt", "default", "kubernetes"}, o.GetName()) || kind == "IPAddress" ||
			strings.HasPrefix(o.GetNamespace(), "kube-")
		own := kind == "Namespace" || o.GetAnnotations()["meta.helm.sh/release-name"] == "theirs" || strings.HasPrefix(o.GetNamespace(), "fairlead") ||
			strings.Contains(o.GetName(), "fairlead")
		return !ofIstio && !usual && !own
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

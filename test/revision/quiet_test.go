package revision_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
)

// scrapable is the flag of an operator that tells its metrics to whoever is on this machine.
const scrapable = "--metrics-insecure-bind-address=127.0.0.1:0"

var metricsAddress = regexp.MustCompile(`name="insecure metrics" addr=(\S+)`)

// metrics of the operator by their names with their labels, as they are written on its page.
func (p *process) metrics(ctx context.Context) (map[string]float64, error) {
	found := metricsAddress.FindStringSubmatch(p.Log.Since(0))
	if found == nil {
		return nil, errors.New("the operator does not say where its metrics are")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+found[1]+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(page)) {
		at := strings.LastIndex(line, " ")
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if all[line[:at]], err = strconv.ParseFloat(strings.TrimSpace(line[at:]), 64); err != nil {
			return nil, fmt.Errorf("metric %s: %w", line, err)
		}
	}
	return all, nil
}

// starting are those whose names begin alike.
func starting(metrics map[string]float64, prefix string) map[string]float64 {
	some := map[string]float64{}
	for name, value := range metrics {
		if strings.HasPrefix(name, prefix) {
			some[name] = value
		}
	}
	return some
}

// rest waits until the operator does nothing any more, and returns what it has done with Helm until then.
func (p *process) rest(t testing.TB) map[string]float64 {
	t.Helper()
	var helm, before map[string]float64
	since := time.Now()
	eventually(t, func(ctx context.Context) error {
		all, err := p.metrics(ctx)
		if err != nil {
			return err
		}
		helm = starting(all, "fairlead_helm_operations_total")
		now := starting(all, "controller_runtime_reconcile_total")
		if !cmp.Equal(before, now) {
			before, since = now, time.Now()
		}
		// Longer than the pauses between the first few attempts at something that fails.
		if time.Since(since) < time.Second {
			return fmt.Errorf("the operator is at work: %v", now)
		}
		return nil
	})
	return helm
}

// Who uses a revision has nothing to do with how it is installed, and what could not be installed is not tried again.
func TestUseNeverRunsHelm(t *testing.T) {
	t.Parallel()
	w := newHub(t)
	w.operate(t, scrapable)
	w.keepServing(t)

	// The oldest is the one that would look after what all share: it must not keep the others waiting.
	unrenderable := makeRevision("unrenderable", hubNamespace, "v1.24.0")
	unrenderable.Spec.Values = v1.Values{"profile": "nonsense"}
	w.make(t, unrenderable)
	says(t, w, unrenderable, v1.ConditionReconciled, v1.ReasonTemplateError)
	refused := makeRevision("refused", hubNamespace, "v1.26.0")
	refused.Spec.Values = v1.Values{"replicaCount": "many", "autoscaleEnabled": false}
	healthy := makeRevision("healthy", hubNamespace, "v1.24.0")
	tag := makeTag("tag", v1.IstioRevisionKind, healthy.Name)
	w.make(t, refused, healthy, tag)
	ready(t, w, healthy)
	w.points(t, tag, healthy.Name)
	says(t, w, refused, v1.ConditionReconciled, v1.ReasonRefused)
	revisions := []*v1.IstioRevision{unrenderable, refused, healthy}
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pods"}})
	before := w.operator.rest(t)

	use := func(n int) {
		t.Helper()
		for i := range n {
			name := revisions[i%len(revisions)].Name
			pod := makePod("pods", fmt.Sprint("pod-", i))
			// Injected earlier: here, nobody would answer a webhook.
			pod.Annotations = map[string]string{v1.AnnotationRevision: name}
			eventually(t, func(ctx context.Context) error { return client.IgnoreAlreadyExists(w.Create(ctx, pod)) })
			if i%5 == 0 {
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("team-", i)}}
				w.make(t, namespace)
				label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1.LabelRevision, []string{name, "tag"}[i%2])
				if err := w.Patch(t.Context(), namespace, client.RawPatch(types.MergePatchType, label)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	use(50)
	for _, revision := range revisions {
		says(t, w, revision, v1.ConditionInUse, v1.ReasonReferencedByWorkloads)
	}
	says(t, w, tag, v1.ConditionInUse, v1.ReasonReferencedByWorkloads)

	if err := w.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("pods"), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	var namespaces corev1.NamespaceList
	if err := w.List(t.Context(), &namespaces, client.HasLabels{v1.LabelRevision}); err != nil {
		t.Fatal(err)
	}
	for i := range namespaces.Items {
		none := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, v1.LabelRevision))
		if err := w.Patch(t.Context(), &namespaces.Items[i], none); err != nil {
			t.Fatal(err)
		}
	}
	for _, revision := range revisions[:2] {
		says(t, w, revision, v1.ConditionInUse, v1.ReasonNotReferencedByAnything)
	}
	says(t, w, healthy, v1.ConditionInUse, v1.ReasonReferencedByTag)
	says(t, w, tag, v1.ConditionInUse, v1.ReasonNotReferencedByAnything)

	if diff := cmp.Diff(before, w.operator.rest(t)); diff != "" {
		t.Errorf("what was done with Helm went (-before +after):\n%s", diff)
	}
	if releases, err := w.releases(t.Context(), hubNamespace); err != nil || releases["refused-istiod"] != "failed v1.26.0" {
		t.Errorf("the releases are %v: %v", releases, err)
	}
}

// TestRestartWritesNothing starts an operator over revisions and tags in every state that one can be in.
func TestRestartWritesNothing(t *testing.T) {
	t.Parallel()
	w := newHub(t)
	faults.DisturbEveryWrite(t, faults.Scenario{
		Config: w.Config(),
		Setup:  w.manyStates,
		// No write is disturbed: what matters is that after a restart there is none.
		Pick: func(int, faults.Log) bool { return false },
		// Long enough to look at all of them.
		Quiet:   3 * time.Second,
		Timeout: 90 * time.Second,
	}, faults.CutAfter())
}

// manyStates is a world of revisions and tags, each in a state of its own.
func (w *world) manyStates(t testing.TB) faults.World {
	t.Helper()
	w.helmInstall(t, types.NamespacedName{Namespace: hubNamespace, Name: "theirs"}, "v1.24.0", "istiod", map[string]any{"revision": "owned"})
	with := func(revision *v1.IstioRevision, values v1.Values) *v1.IstioRevision {
		revision.Spec.Values = values
		return revision
	}
	paused := makeRevision("paused", hubNamespace, "v1.24.0")
	paused.Annotations = map[string]string{fairlead.AnnotationPaused: "true"}
	states := []struct {
		object client.Object
		kind   v1.ConditionType
		reason v1.Reason
	}{
		{inPlace("default", hubNamespace, "v1.31.1"), v1.ConditionReady, v1.ReasonIstiodReady},
		{revisionBased("based", hubNamespace, "v1.26.0", 0), v1.ConditionReady, v1.ReasonIstiodReady},
		{makeRevision("by-hand", hubNamespace, "v1.24.0"), v1.ConditionReady, v1.ReasonIstiodReady},
		{with(makeRevision("unready", hubNamespace, "v1.24.0"), unready()), v1.ConditionReady, v1.ReasonIstiodNotReady},
		{with(makeRevision("unrenderable", hubNamespace, "v1.24.0"), v1.Values{"profile": "nonsense"}), v1.ConditionReconciled, v1.ReasonTemplateError},
		{with(makeRevision("refused", hubNamespace, "v1.24.0"), v1.Values{"affinity": "x"}), v1.ConditionReconciled, v1.ReasonRefused},
		{makeRevision("owned", hubNamespace, "v1.24.0"), v1.ConditionReconciled, v1.ReasonOwnedByOthers},
		{makeRevision("unknown", hubNamespace, "v1.25.0"), v1.ConditionReconciled, v1.ReasonVersionNotFound},
		{makeRevision("nowhere", "missing", "v1.24.0"), v1.ConditionReconciled, v1.ReasonNamespaceNotFound},
		{paused, v1.ConditionReconciled, v1.ReasonPaused},
		{makeTag("floating", v1.IstioKind, "based"), v1.ConditionReconciled, v1.ReasonReconciled},
		{makeTag("fixed", v1.IstioRevisionKind, "by-hand"), v1.ConditionReconciled, v1.ReasonReconciled},
		{makeTag("waiting", v1.IstioRevisionKind, "unready"), v1.ConditionReconciled, v1.ReasonIstiodNotReady},
		{makeTag("dangling", v1.IstioRevisionKind, "nobody"), v1.ConditionReconciled, v1.ReasonRefNotFound},
	}
	for _, s := range states {
		w.make(t, s.object)
	}
	w.make(t, makeTag("by-hand", v1.IstioKind, "default"))
	return faults.World{
		Run: inProcess(t),
		Settled: func(ctx context.Context) error {
			missing := w.serve(ctx)
			for _, s := range states {
				if err := w.Get(ctx, client.ObjectKeyFromObject(s.object), s.object); err != nil {
					return err
				}
				if condition(s.object, s.kind).Reason != string(s.reason) {
					missing = errors.Join(missing, fmt.Errorf("%T %s: %s is not %s: %s", s.object, s.object.GetName(), s.kind, s.reason, said(s.object)))
				}
			}
			return missing
		},
		Snapshot: func(context.Context) (map[string]string, error) { return nil, nil },
	}
}

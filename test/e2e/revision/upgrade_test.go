package revision_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/history"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestStoryUpgrade is the story that all others are details of: two control planes side by side, tags that lead to them,
// and an old one that goes when nobody needs it any more.
func TestStoryUpgrade(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	const grace = 2 * time.Second
	name, system := shortName(t), w.namespace(t)
	first, second := name+"-v1-24-0", name+"-v1-26-0"
	revisions := history.Follow[*v1.IstioRevision](t, w, &v1.IstioRevisionList{})

	t.Log("a control plane, a tag that follows the Istio and one that is fixed")
	istio := harness.Create(t, w, revisionBased(name, system, "v1.24.0", grace))
	live := harness.Create(t, w, makeTag(name+"-live", v1.IstioKind, name))
	pinned := harness.Create(t, w, makeTag(name+"-pinned", v1.IstioRevisionKind, first))
	moves := history.Follow[*admissionv1.MutatingWebhookConfiguration](t, w, &admissionv1.MutatingWebhookConfigurationList{}, ofTag(live.Name))
	ready(t, w, istio)
	w.points(t, live, first)
	w.points(t, pinned, first)
	w.istiod(t, system, first)
	shop := w.namespace(t, v1.LabelRevision, live.Name)
	bank := w.namespace(t, v1.LabelRevision, pinned.Name)
	last := w.injected(t, shop, "last", first)
	for _, pod := range []string{"cart", "till", "vault"} {
		w.injected(t, bank, pod, first)
	}

	t.Log("the next version is asked for, and does not become ready")
	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Version, istio.Spec.Values = "v1.26.0", unready() })
	held := says(t, w, live, v1.ConditionReconciled, v1.ReasonIstiodNotReady)
	want := fmt.Sprintf("IstioRevision %s is not ready; until then the tag still points to IstioRevision %s", second, first)
	if held.Message != want || live.Status.IstioRevision != first {
		t.Errorf("the tag points to %s and says %q, want %q", live.Status.IstioRevision, held.Message, want)
	}
	says(t, w, istio, v1.ConditionReady, v1.ReasonIstiodNotReady)
	if istio.Status.ActiveRevisionName != second {
		t.Errorf("the active revision is %s", istio.Status.ActiveRevisionName)
	}
	w.injects(t, live.Name, system+"/istiod-"+first)
	w.injectedNow(t, shop, "meanwhile", first)

	t.Log("it becomes ready, and the floating tag moves")
	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Values = nil })
	ready(t, w, istio)
	w.points(t, live, second)
	w.points(t, pinned, first)
	isReady := revisions.First(t, second+" being ready", func(h history.Event[*v1.IstioRevision]) bool {
		return h.Object.Name == second && condition(h.Object, v1.ConditionReady).Status == metav1.ConditionTrue
	})
	moved := moves.First(t, "the move of the tag", func(h history.Event[*admissionv1.MutatingWebhookConfiguration]) bool {
		return strings.Contains(leadsTo(h.Object), second)
	})
	if history.Order(t, moved.Object) < history.Order(t, isReady.Object) {
		t.Error("the tag was moved before the revision was ready")
	}
	w.istiod(t, system, second)
	w.injected(t, shop, "new", second)
	w.injectedNow(t, bank, "still", first)

	t.Log("the old control plane says who keeps it")
	users := []string{
		"IstioRevisionTag " + pinned.Name,
		"Pod " + bank + "/cart", "Pod " + bank + "/still", "Pod " + bank + "/till", "Pod " + bank + "/vault",
		"Pod " + shop + "/last", "Pod " + shop + "/meanwhile",
	}
	pods := users[1:]
	slices.Sort(pods)
	old := w.usedBy(t, first, "1 tag and 6 pods: "+strings.Join(users[:5], ", ")+", and 2 more")
	if diff := cmp.Diff(users, w.references(t, first)); diff != "" {
		t.Errorf("fairlead status istiorevision %s: (-want +got)\n%s", first, diff)
	}
	until(t, w, istio, func(istio *v1.Istio) error {
		if diff := cmp.Diff(&v1.RevisionSummary{Total: 2, Ready: 2, InUse: 2}, istio.Status.Revisions); diff != "" {
			return fmt.Errorf("revisions: %s", diff)
		}
		if got := condition(istio, v1.ConditionReconciled).Message; !strings.HasSuffix(got, "; kept while in use: "+first) {
			return fmt.Errorf("it does not tell what is kept: %q", got)
		}
		return nil
	})

	t.Log("all but one of its users go")
	w.delete(t, pinned)
	for _, pod := range []string{"cart", "till", "vault", "still"} {
		w.delete(t, makePod(bank, pod))
	}
	w.delete(t, makePod(shop, "meanwhile"))
	w.usedBy(t, first, "1 pod: Pod "+shop+"/last")

	t.Log("the last one goes, and after a while the control plane")
	unused := time.Now()
	w.delete(t, last)
	gone := revisions.First(t, "the deletion of "+first, func(h history.Event[*v1.IstioRevision]) bool {
		return h.Object.Name == first && !h.Object.DeletionTimestamp.IsZero()
	})
	// The API keeps whole seconds.
	if early := grace - gone.Object.DeletionTimestamp.Add(time.Second).Sub(unused); early > 0 {
		t.Errorf("it was deleted %s early", early)
	}
	since, err := time.Parse(time.RFC3339, gone.Object.Annotations[v1.AnnotationInactiveSince])
	if err != nil || since.After(unused) {
		t.Errorf("%s is %v, %v", v1.AnnotationInactiveSince, since, err)
	}
	w.nothingLeft(t, func(_ string, o client.Object) bool { return strings.Contains(o.GetName(), first) })
	if err := w.isGone(t.Context(), old); err != nil {
		t.Error(err)
	}
	until(t, w, istio, func(istio *v1.Istio) error {
		if diff := cmp.Diff(&v1.RevisionSummary{Total: 1, Ready: 1, InUse: 1}, istio.Status.Revisions); diff != "" {
			return fmt.Errorf("revisions: %s", diff)
		}
		return nil
	})
	w.injected(t, shop, "newer", second)
}

// usedBy waits until a revision says that it is in use, and by whom.
func (w *world) usedBy(t testing.TB, revision, message string) *v1.IstioRevision {
	t.Helper()
	return until(t, w, makeRevision(revision, "", ""), func(r *v1.IstioRevision) error {
		if got := condition(r, v1.ConditionInUse); got.Status != metav1.ConditionTrue || got.Message != message {
			return fmt.Errorf("it is not used by %s", message)
		}
		return nil
	})
}

// references are what `fairlead status` lists as users of a revision; it prints what it encodes.
func (w *world) references(t testing.TB, revision string) []string {
	t.Helper()
	var report struct {
		References []struct{ Kind, Namespace, Name string } `json:"references"`
	}
	encoded := w.fairlead(t, "status", "istiorevision", revision, "-o", "json")
	if err := json.Unmarshal([]byte(encoded.stdout), &report); err != nil {
		t.Fatalf("%v: %+v", err, encoded)
	}
	printed := w.fairlead(t, "status", "istiorevision", revision, "-o", "wide")
	var names []string
	for _, r := range report.References {
		names = append(names, r.Kind+" "+strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
		if !slices.ContainsFunc(strings.Split(printed.stdout, "\n"), func(line string) bool {
			fields := strings.Fields(line)
			return len(fields) > 2 && fields[0] == r.Kind && fields[2] == r.Name
		}) {
			t.Errorf("%s %s is not in\n%s", r.Kind, r.Name, printed.stdout)
		}
	}
	return names
}

// The old control plane is all there is until the new one serves, even if nothing uses it and there is no grace.
func TestNothingIsPrunedBeforeItsSuccessorIsReady(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, system := shortName(t), w.namespace(t)
	first, second := name+"-v1-24-0", name+"-v1-26-0"
	revisions := history.Follow[*v1.IstioRevision](t, w, &v1.IstioRevisionList{})
	istio := harness.Create(t, w, revisionBased(name, system, "v1.24.0", 0))
	ready(t, w, istio)

	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Version, istio.Spec.Values = "v1.26.0", unready() })
	says(t, w, istio, v1.ConditionReady, v1.ReasonIstiodNotReady)
	old := makeRevision(first, "", "")
	says(t, w, old, v1.ConditionInUse, v1.ReasonNotReferencedByAnything)
	until(t, w, old, func(old *v1.IstioRevision) error {
		if old.Annotations[v1.AnnotationInactiveSince] == "" {
			return errors.New("it is not told that it is inactive")
		}
		return nil
	})
	want := "unused; deleted when IstioRevision " + second + " is ready"
	if got := w.fairlead(t, "status", "istio", name, "-o", "wide"); got.code != 3 || !strings.Contains(got.stdout, want) {
		t.Errorf("status does not tell %q: %+v", want, got)
	}

	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Values = nil })
	gone := revisions.First(t, "the deletion of "+first, func(h history.Event[*v1.IstioRevision]) bool {
		return h.Object.Name == first && !h.Object.DeletionTimestamp.IsZero()
	})
	isReady := revisions.First(t, second+" being ready", func(h history.Event[*v1.IstioRevision]) bool {
		return h.Object.Name == second && condition(h.Object, v1.ConditionReady).Status == metav1.ConditionTrue
	})
	if history.Order(t, gone.Object) < history.Order(t, isReady.Object) {
		t.Error("the old revision was deleted before the new one was ready")
	}
	wait.Until(t, func(ctx context.Context) error { return w.isGone(ctx, old) })

	t.Log("back to the old version: what nothing has ever used is kept for the grace period, too")
	const grace = 2 * time.Second
	asked := time.Now()
	harness.Change(t, w, istio, func(istio *v1.Istio) {
		istio.Spec.Version = "v1.24.0"
		istio.Spec.UpdateStrategy.InactiveRevisionDeletionGracePeriodSeconds = ptr.To(int64(grace.Seconds()))
	})
	gone = revisions.First(t, "the deletion of "+second, func(h history.Event[*v1.IstioRevision]) bool {
		return h.Object.Name == second && !h.Object.DeletionTimestamp.IsZero()
	})
	// The API keeps whole seconds.
	if early := grace - gone.Object.DeletionTimestamp.Add(time.Second).Sub(asked); early > 0 {
		t.Errorf("it was deleted %s early", early)
	}
}

func TestStrategySwitch(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, system := shortName(t), w.namespace(t)
	istio := inPlace(name, system, "v1.24.0")
	istio.Spec.UpdateStrategy.InactiveRevisionDeletionGracePeriodSeconds = ptr.To[int64](0)
	harness.Create(t, w, istio)
	tag := harness.Create(t, w, makeTag(name+"-tag", v1.IstioKind, name))
	for i, step := range []struct {
		strategy     v1.UpdateStrategyType
		active, gone string
	}{
		{v1.UpdateStrategyInPlace, name, name + "-v1-24-0"},
		{v1.UpdateStrategyRevisionBased, name + "-v1-24-0", name},
		{v1.UpdateStrategyInPlace, name, name + "-v1-24-0"},
	} {
		t.Logf("%d. %s", i+1, step.strategy)
		harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.UpdateStrategy.Type = step.strategy })
		until(t, w, istio, func(istio *v1.Istio) error {
			if istio.Status.ActiveRevisionName != step.active || condition(istio, v1.ConditionReady).Status != metav1.ConditionTrue {
				return fmt.Errorf("%s is not ready", step.active)
			}
			if diff := cmp.Diff(&v1.RevisionSummary{Total: 1, Ready: 1, InUse: 1}, istio.Status.Revisions); diff != "" {
				return fmt.Errorf("revisions: %s", diff)
			}
			return nil
		})
		w.points(t, tag, step.active)
		w.nothingLeft(t, func(kind string, o client.Object) bool {
			named := slices.Contains([]string{
				step.gone, "istiod-" + step.gone, "istio-" + step.gone, "istio-sidecar-injector-" + step.gone + "-" + system,
			}, o.GetName())
			return named && kind != v1.IstioKind
		})
	}
}

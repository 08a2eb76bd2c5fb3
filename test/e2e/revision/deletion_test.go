package revision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestDefaultTagAndDeletions has a cluster of its own: there is one tag called default, and names in labels that lead nowhere
// are reported on every Istio.
func TestDefaultTagAndDeletions(t *testing.T) {
	t.Parallel()
	w := newHub(t)
	w.operate(t)
	w.keepServing(t)
	istio := revisionBased("mesh", hubNamespace, "v1.24.0", 0)
	w.make(t, istio)
	ready(t, w, istio)
	t.Run("an Istio keeps the default tag that it asks for", func(t *testing.T) { w.keepsDefaultTag(t, istio) })
	t.Run("who deletes what is in use is warned", func(t *testing.T) { w.warnsOfDeletion(t, istio) })
}

func (w *world) keepsDefaultTag(t *testing.T, istio *v1.Istio) {
	tag := makeTag("default", v1.IstioKind, "mesh")
	asks := func(istio *v1.Istio, asks bool) {
		t.Helper()
		harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.UpdateStrategy.DefaultTag = asks })
	}
	isOf := func(istio *v1.Istio, other func(*v1.IstioRevisionTag) bool) {
		t.Helper()
		until(t, w, tag, func(tag *v1.IstioRevisionTag) error {
			if !metav1.IsControlledBy(tag, istio) || tag.Spec.TargetRef != (v1.TargetReference{Kind: v1.IstioKind, Name: istio.Name}) || !other(tag) {
				return fmt.Errorf("it belongs to %v and follows %v", tag.OwnerReferences, tag.Spec.TargetRef)
			}
			return nil
		})
	}
	asks(istio, true)
	isOf(istio, func(*v1.IstioRevisionTag) bool { return true })
	w.points(t, tag, "mesh-v1-24-0")
	says(t, w, istio, v1.ConditionReconciled, v1.ReasonReconciled)

	t.Log("it is restored when a user changes or deletes it")
	harness.Change(t, w, tag, func(tag *v1.IstioRevisionTag) { tag.Spec.TargetRef.Name = "another" })
	isOf(istio, func(*v1.IstioRevisionTag) bool { return true })
	before := tag.UID
	if err := w.Delete(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	isOf(istio, func(tag *v1.IstioRevisionTag) bool { return tag.UID != before })

	t.Log("another Istio that asks for it is told whose it is, and gets all the rest")
	second := revisionBased("second", hubNamespace, "v1.24.0", 0)
	second.Spec.UpdateStrategy.DefaultTag = true
	w.make(t, second)
	refused := says(t, w, second, v1.ConditionReconciled, v1.ReasonNameAlreadyExists)
	if want := "IstioRevisionTag default exists, follows Istio mesh and was not made by Istio second; " +
		"delete the tag, or take spec.updateStrategy.defaultTag back"; refused.Message != want {
		t.Errorf("it says %q, want %q", refused.Message, want)
	}
	ready(t, w, second)
	asks(second, false)
	says(t, w, second, v1.ConditionReconciled, v1.ReasonReconciled)

	t.Log("taken back, it is kept while it is used")
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1.LabelInjection: v1.InjectionEnabled}}}
	w.make(t, shop)
	inUse(t, w, tag, "1 namespace: Namespace shop")
	asks(istio, false)
	until(t, w, istio, func(istio *v1.Istio) error {
		if got := condition(istio, v1.ConditionReconciled); got.Status != metav1.ConditionTrue {
			return errors.New("it has not seen the change")
		}
		return nil
	})
	w.points(t, tag, "mesh-v1-24-0")
	kept := "no longer asked for; kept while in use by 1 namespace: Namespace shop"
	if got := w.fairlead(t, "status", "istio", "mesh", "-o", "wide"); got.code != 0 || !strings.Contains(got.stdout, kept) {
		t.Errorf("fairlead status istio does not tell %q: %+v", kept, got)
	}
	w.label(t, "shop", v1.LabelInjection, nil)
	wait.Until(t, func(ctx context.Context) error { return w.isGone(ctx, tag) })

	t.Log("a tag of the user's own is left alone")
	mine := makeTag("default", v1.IstioKind, "second")
	w.make(t, mine)
	asks(istio, true)
	says(t, w, istio, v1.ConditionReconciled, v1.ReasonNameAlreadyExists)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); err != nil || mine.Spec.TargetRef.Name != "second" || len(mine.OwnerReferences) > 0 {
		t.Errorf("it is %+v, %v", mine, err)
	}
	asks(istio, false)
	// Not before the operator has seen that: it would create the tag again when that of the user is gone.
	says(t, w, istio, v1.ConditionReconciled, v1.ReasonReconciled)
	w.delete(t, mine)
	w.delete(t, second)
}

func (w *world) warnsOfDeletion(t *testing.T, istio *v1.Istio) {
	prod := makeTag("prod", v1.IstioKind, "mesh")
	w.make(t, prod)
	w.points(t, prod, "mesh-v1-24-0")
	heard := &warnings{}
	config := rest.CopyConfig(w.Config())
	config.WarningHandlerWithContext = heard
	c, err := client.New(config, client.Options{Scheme: w.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	// The API server takes a moment to know the policy.
	warned := func(object client.Object, fragments ...string) {
		t.Helper()
		wait.Until(t, func(ctx context.Context) error {
			heard.drain()
			if err := c.Delete(ctx, object, client.DryRunAll); err != nil {
				return err
			}
			got := strings.Join(heard.drain(), "\n")
			for _, fragment := range fragments {
				if !strings.Contains(got, fragment) {
					return fmt.Errorf("the warning is %q, without %q", got, fragment)
				}
			}
			return nil
		})
	}
	warned(istio, "Istio mesh has 1 revision in use", "uninstalls the control planes")

	t.Log("a tag that nothing uses goes without a word")
	says(t, w, prod, v1.ConditionInUse, v1.ReasonNotReferencedByAnything)
	heard.drain()
	if err := c.Delete(t.Context(), prod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if got := heard.drain(); len(got) > 0 {
		t.Errorf("warned of %q", got)
	}
	bank := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank", Labels: map[string]string{v1.LabelRevision: "prod"}}}
	w.make(t, bank)
	inUse(t, w, prod, "1 namespace: Namespace bank")
	warned(prod, "IstioRevisionTag prod is in use by 1 namespace: Namespace bank", "get no sidecar")

	t.Log("it is deleted all the same, and the Istio tells what still has its name")
	w.delete(t, prod)
	until(t, w, istio, func(istio *v1.Istio) error {
		got, want := condition(istio, v1.ConditionResolvedRefs), "prod (1 namespace: Namespace bank)"
		if got.Reason != string(v1.ReasonRefNotFound) || !strings.Contains(got.Message, want) {
			return fmt.Errorf("it says %q, without %q", got.Message, want)
		}
		return nil
	})
	if istio.Status.State != v1.StateHealthy {
		t.Errorf("the Istio itself is %s", istio.Status.State)
	}
	for _, command := range [][]string{{"status", "istio", "mesh", "-o", "wide"}, {"watch", "istio", "mesh", "--wait"}} {
		if got := w.fairlead(t, command...); got.code != 0 || !strings.Contains(got.stdout, "prod (1 namespace: Namespace bank)") {
			t.Errorf("fairlead %v does not tell: %+v", command, got)
		}
	}

	t.Log("more of them are told of, and none when the name is there again")
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attic", Labels: map[string]string{v1.LabelRevision: "canary"}}})
	until(t, w, istio, func(istio *v1.Istio) error {
		if got := condition(istio, v1.ConditionResolvedRefs).Message; !strings.Contains(got, "canary (1 namespace: Namespace attic); prod (") {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
	w.label(t, "attic", v1.LabelRevision, nil)
	w.make(t, makeTag("prod", v1.IstioKind, "mesh"))
	until(t, w, istio, func(istio *v1.Istio) error {
		if meta.FindStatusCondition(istio.Status.Conditions, string(v1.ConditionResolvedRefs)) != nil {
			return errors.New("it still says that labels lead nowhere")
		}
		return nil
	})

	t.Log("when the last Istio is gone, the commands tell what is left of its names")
	w.label(t, "attic", v1.LabelRevision, ptr.To("mesh-v1-24-0"))
	w.delete(t, istio)
	for _, command := range [][]string{{"status", "istio", "mesh"}, {"watch", "istio", "mesh", "--wait"}} {
		got := w.fairlead(t, command...)
		for _, want := range []string{
			"does not exist", "mesh-v1-24-0 (1 namespace: Namespace attic)",
			"IstioRevisionTag prod, which follows it, is in use by 1 namespace: Namespace bank",
		} {
			if got.code != 1 || !strings.Contains(got.stderr, want) {
				t.Errorf("fairlead %v does not tell %q: %+v", command, want, got)
			}
		}
	}
}

// warnings keeps those of the API server.
type warnings struct {
	mu    sync.Mutex
	heard []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, text)
}

func (w *warnings) drain() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := slices.Clone(w.heard)
	w.heard = nil
	return heard
}

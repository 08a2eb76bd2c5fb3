package revision_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/history"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// named is held by the test that has what is called default.
var named sync.Mutex

// ofDefault lets no other test have what is called default until this one has ended, and all that it had is gone.
func ofDefault(t *testing.T) *world {
	t.Helper()
	w := theWorld(t)
	named.Lock()
	t.Cleanup(func() {
		defer named.Unlock()
		if err := wait.Try(context.Background(), w.clearDefault); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) clearDefault(ctx context.Context) error {
	var left []error
	for _, object := range []client.Object{
		makeTag(v1.DefaultRevision, "", ""), inPlace(v1.DefaultRevision, "", ""), makeRevision(v1.DefaultRevision, "", ""),
	} {
		left = append(left, client.IgnoreNotFound(w.Delete(ctx, object)), w.isGone(ctx, object))
	}
	var revisions v1.IstioRevisionList
	var namespaces corev1.NamespaceList
	// A namespace with injection disabled is another test's.
	enabled := client.MatchingLabels{v1.LabelInjection: v1.InjectionEnabled}
	if err := errors.Join(w.List(ctx, &revisions), w.List(ctx, &namespaces, enabled)); err != nil {
		return err
	}
	for i := range revisions.Items {
		if owner := metav1.GetControllerOf(&revisions.Items[i]); owner != nil && owner.Name == v1.DefaultRevision {
			left = append(left, fmt.Errorf("IstioRevision %s is still there: %s", revisions.Items[i].Name, said(&revisions.Items[i])))
		}
	}
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		left = append(left, fmt.Errorf("namespace %s is still there", namespace.Name))
		if namespace.DeletionTimestamp == nil {
			left = append(left, w.Delete(ctx, namespace))
		}
	}
	return errors.Join(left...)
}

// istioSystem is the usual namespace, which outlives the test. There is one istiod of the revision default in a cluster, so
// that it has to be in the same namespace if the test runs again.
func (w *world) istioSystem(t testing.TB) string {
	t.Helper()
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "istio-system"}}
	if err := w.Create(t.Context(), system); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	return system.Name
}

// The revision called default serves istio-injection=enabled, and a tag of that name takes over from it.
func TestDefaultBecomesATag(t *testing.T) {
	t.Parallel()
	w := ofDefault(t)
	system, shop := w.istioSystem(t), w.namespace(t, v1.LabelInjection, v1.InjectionEnabled)
	istio := inPlace("default", system, "v1.24.0")
	istio.Spec.UpdateStrategy.InactiveRevisionDeletionGracePeriodSeconds = ptr.To[int64](0)
	harness.Create(t, w, istio)
	ready(t, w, istio)
	w.istiod(t, system, "default")
	cart := w.injected(t, shop, "cart", "default")
	w.validates(t, system+"/istiod")

	t.Log("a tag wants the name")
	tag := harness.Create(t, w, makeTag("default", v1.IstioKind, "default"))
	waits := func() {
		t.Helper()
		want := fmt.Sprintf("the name is already used by IstioRevision default (in use by 1 namespace and 1 pod: Namespace %s, Pod %s/cart); "+
			"the tag gets the name when IstioRevision default is deleted, or give the tag another name", shop, shop)
		until(t, w, tag, func(tag *v1.IstioRevisionTag) error {
			if got := condition(tag, v1.ConditionReconciled); got.Reason != string(v1.ReasonNameAlreadyExists) || got.Message != want {
				return fmt.Errorf("it does not wait: %q", want)
			}
			return nil
		})
		w.injects(t, "default", "")
	}
	waits()

	t.Log("the Istio becomes RevisionBased, and the old revision holds the name while it is used")
	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.UpdateStrategy.Type = v1.UpdateStrategyRevisionBased })
	until(t, w, istio, func(istio *v1.Istio) error {
		if istio.Status.ActiveRevisionName != "default-v1-24-0" || condition(istio, v1.ConditionReady).Status != metav1.ConditionTrue {
			return fmt.Errorf("%s is not ready", istio.Status.ActiveRevisionName)
		}
		if got := condition(istio, v1.ConditionReconciled).Message; !strings.HasSuffix(got, "; kept while in use: default") {
			return fmt.Errorf("it does not tell what is kept: %q", got)
		}
		return nil
	})
	waits()
	w.injectedNow(t, shop, "till", "default")
	w.delete(t, makePod(shop, "till"))

	t.Log("its users go, and with them the old revision")
	w.delete(t, cart)
	w.label(t, shop, v1.LabelInjection, nil)
	w.points(t, tag, "default-v1-24-0")
	if err := w.isGone(t.Context(), makeRevision("default", "", "")); err != nil {
		t.Error(err)
	}
	w.validates(t, system+"/istiod-default-v1-24-0")

	t.Log("the tag serves what the revision has served")
	w.istiod(t, system, "default-v1-24-0")
	w.label(t, shop, v1.LabelInjection, ptr.To(v1.InjectionEnabled))
	w.injected(t, shop, "cart", "default-v1-24-0")
	until(t, w, tag, func(tag *v1.IstioRevisionTag) error {
		used := condition(tag, v1.ConditionInUse)
		if tag.Status.State != v1.StateHealthy || !strings.HasPrefix(used.Message, "1 namespace") || !strings.Contains(used.Message, "Namespace "+shop) {
			return fmt.Errorf("it is %s, used by %q", tag.Status.State, used.Message)
		}
		return nil
	})
}

// label of a namespace; nil takes it away.
func (w *world) label(t testing.TB, namespace, label string, value *string) {
	t.Helper()
	harness.Change(t, w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(ns *corev1.Namespace) {
		delete(ns.Labels, label)
		if value != nil {
			ns.Labels[label] = *value
		}
	})
}

const defaultValidator = "istiod-default-validator"

// Configuration that names no revision is validated by the one that default stands for.
func TestDefaultValidates(t *testing.T) {
	t.Parallel()
	w := ofDefault(t)
	name, system := shortName(t), w.namespace(t)
	istio := harness.Create(t, w, revisionBased(name, system, "v1.24.0", 0))
	ready(t, w, istio)
	w.validates(t, "")

	validators := history.Follow[*admissionv1.ValidatingWebhookConfiguration](t, w, &admissionv1.ValidatingWebhookConfigurationList{})

	t.Log("with the tag")
	tag := harness.Create(t, w, makeTag("default", v1.IstioKind, name))
	w.points(t, tag, name+"-v1-24-0")
	w.validates(t, system+"/istiod-"+name+"-v1-24-0")

	t.Log("it moves with the tag")
	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Version = "v1.26.0" })
	w.points(t, tag, name+"-v1-26-0")
	w.validates(t, system+"/istiod-"+name+"-v1-26-0")

	t.Log("it moves with the tag across namespaces")
	elsewhere := w.namespace(t)
	ready(t, w, harness.Create(t, w, makeRevision(name+"-elsewhere", elsewhere, "v1.26.0")))
	harness.Change(t, w, tag, func(tag *v1.IstioRevisionTag) {
		tag.Spec.TargetRef = v1.TargetReference{Kind: v1.IstioRevisionKind, Name: name + "-elsewhere"}
	})
	w.validates(t, elsewhere+"/istiod-"+name+"-elsewhere")
	w.nothingLeft(t, func(kind string, o client.Object) bool {
		return kind == "Secret" && o.GetNamespace() == system && o.GetLabels()["name"] == "fairlead-default-validator"
	})

	for _, event := range validators.Events(t) {
		if event.Type == watch.Deleted && event.Object.Name == defaultValidator {
			t.Error("for a moment there was nobody to validate")
		}
	}

	t.Log("nobody is default any more")
	w.delete(t, tag)
	w.validates(t, "")
	w.nothingLeft(t, func(kind string, o client.Object) bool {
		return kind == "Secret" && o.GetLabels()["name"] == "fairlead-default-validator"
	})
}

// validates waits until the webhook of configuration that names no revision leads to a Service, or is not there.
func (w *world) validates(t testing.TB, service string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var validator admissionv1.ValidatingWebhookConfiguration
		err := w.Get(ctx, client.ObjectKey{Name: defaultValidator}, &validator)
		if apierrors.IsNotFound(err) && service == "" {
			return nil
		}
		if err != nil {
			return err
		}
		for _, webhook := range validator.Webhooks {
			to := webhook.ClientConfig.Service
			if got := to.Namespace + "/" + to.Name; got != service {
				return fmt.Errorf("the validator leads to %q, not to %q", got, service)
			}
		}
		return nil
	})
}

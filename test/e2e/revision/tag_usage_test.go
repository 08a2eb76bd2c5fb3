package revision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
)

const nobody = "nothing refers to this name"

// TestUsage begins to use a revision or tag and ends it, in a few of the ways that package usage has a table of. NAME
// stands for the revision or tag, and SHOP for the namespace of the pod.
func TestUsage(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	type labels = map[string]string
	for _, c := range []struct {
		name      string
		namespace labels
		// Nil for no pod.
		pod, annotations labels
		used             string
		then             func(*user)
		after            string
	}{
		{
			name: "a namespace without pods", namespace: labels{"istio.io/rev": "NAME"},
			used: "1 namespace: Namespace SHOP",
			then: func(u *user) { u.labelNamespace("istio.io/rev", "another") }, after: nobody,
		},
		{
			name: "a pod that ends", pod: labels{"istio.io/rev": "NAME"},
			used: "1 pod: Pod SHOP/app",
			then: func(u *user) { u.phase(corev1.PodSucceeded) }, after: nobody,
		},
		{
			name: "a pod that has its sidecar, and wants none", pod: labels{"istio.io/rev": "NAME"}, annotations: labels{"istio.io/rev": "NAME"},
			namespace: labels{"istio.io/rev": "NAME"},
			used:      "1 namespace and 1 pod: Namespace SHOP, Pod SHOP/app",
			then: func(u *user) {
				u.labelPod("sidecar.istio.io/inject", "false")
				u.labelNamespace("istio-injection", "disabled")
			},
			after: "1 pod: Pod SHOP/app",
		},
		{
			name: "a pod that goes", pod: labels{}, annotations: labels{"istio.io/rev": "NAME"},
			used: "1 pod: Pod SHOP/app",
			then: func(u *user) { u.w.delete(u.t, u.pod) }, after: nobody,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := shortName(t)
			named := func(in labels) labels {
				out := labels{}
				for key, value := range in {
					out[key] = strings.ReplaceAll(value, "NAME", name)
				}
				return out
			}
			// Who uses a revision is known whether or not it can be installed.
			revision := harness.Create(t, w, makeRevision(name, "nowhere", "v1.24.0"))
			u := &user{t: t, w: w, namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shortName(t), Labels: named(c.namespace)}}}
			harness.Create(t, w, u.namespace)
			if c.pod != nil {
				u.pod = makePod(u.namespace.Name, "app")
				u.pod.Labels, u.pod.Annotations = named(c.pod), named(c.annotations)
				w.createPod(t, u.pod)
			}
			inUse(t, w, revision, strings.ReplaceAll(c.used, "SHOP", u.namespace.Name))
			c.then(u)
			inUse(t, w, revision, strings.ReplaceAll(c.after, "SHOP", u.namespace.Name))
		})
	}

	t.Run("a tag uses its target, and is not used with it", func(t *testing.T) {
		t.Parallel()
		name := shortName(t)
		revision := harness.Create(t, w, makeRevision(name, "nowhere", "v1.24.0"))
		tag := harness.Create(t, w, makeTag(name+"-tag", v1.IstioRevisionKind, name))
		inUse(t, w, revision, "1 tag: IstioRevisionTag "+tag.Name)
		if got := condition(revision, v1.ConditionInUse).Reason; got != string(v1.ReasonReferencedByTag) {
			t.Errorf("the reason is %s", got)
		}

		shop := w.namespace(t)
		pod := makePod(shop, "injected")
		pod.Annotations = labels{v1.AnnotationRevision: name}
		w.createPod(t, pod)
		inUse(t, w, revision, "1 tag and 1 pod: IstioRevisionTag "+tag.Name+", Pod "+shop+"/injected")
		inUse(t, w, tag, nobody)

		labelled := makePod(shop, "labelled")
		labelled.Labels = labels{v1.LabelRevision: tag.Name}
		w.createPod(t, labelled)
		inUse(t, w, tag, "1 pod: Pod "+shop+"/labelled")
		w.delete(t, tag)
		inUse(t, w, revision, "1 pod: Pod "+shop+"/injected")
	})
}

// inUse waits until an IstioRevision or IstioRevisionTag says by whom it is used.
func inUse[T client.Object](t testing.TB, w *world, object T, message string) {
	t.Helper()
	until(t, w, object, func(object T) error {
		got := condition(object, v1.ConditionInUse)
		if got.Message != message {
			return fmt.Errorf("used by %q, want %q", got.Message, message)
		}
		if (got.Status == metav1.ConditionFalse) != (message == nobody) || (got.Reason == string(v1.ReasonNotReferencedByAnything)) != (message == nobody) {
			return errors.New("status and reason do not fit the message")
		}
		return nil
	})
}

// user is a namespace, and perhaps a pod in it.
type user struct {
	t         testing.TB
	w         *world
	namespace *corev1.Namespace
	pod       *corev1.Pod
}

func (u *user) labelNamespace(label, value string) {
	u.t.Helper()
	u.w.label(u.t, u.namespace.Name, label, &value)
}

func (u *user) labelPod(label, value string) {
	u.t.Helper()
	harness.Change(u.t, u.w, u.pod, func(pod *corev1.Pod) { pod.Labels[label] = value })
}

func (u *user) phase(phase corev1.PodPhase) {
	u.t.Helper()
	// KWOK would put its own phase in the place of one that is set before.
	harness.WaitFor(u.t, u.w, u.pod, func(pod *corev1.Pod) error {
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s, and does not run yet", pod.Status.Phase)
		}
		return nil
	})
	before := u.pod.DeepCopy()
	u.pod.Status.Phase = phase
	if err := u.w.Status().Patch(u.t.Context(), u.pod, client.MergeFrom(before)); err != nil {
		u.t.Fatal(err)
	}
}

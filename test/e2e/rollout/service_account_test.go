package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// refusesAccount: the condition says that a ServiceAccount may not be used, and what to do.
func refusesAccount(name string) meets {
	return func(e *environment, m *v1alpha2.Materialize) error {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha2.ConditionServiceAccountAllowed)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(v1alpha2.ReasonNotAllowed) || c.ObservedGeneration != m.Generation {
			return fmt.Errorf("condition %+v", c)
		}
		for _, words := range []string{"ServiceAccount " + e.namespace + "/" + name, "annotate serviceaccount " + name + " " + v1alpha2.AnnotationAllowMaterialize + "=true"} {
			if !strings.Contains(c.Message, words) {
				return fmt.Errorf("%q does not say %q", c.Message, words)
			}
		}
		return nil
	}
}

func allowsAccount(_ *environment, m *v1alpha2.Materialize) error {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha2.ConditionServiceAccountAllowed); c != nil {
		return fmt.Errorf("condition %+v", c)
	}
	return nil
}

// grants tells whether the environment grants anything to a ServiceAccount.
func (e *environment) grants(t *testing.T, account string) bool {
	t.Helper()
	var bindings rbacv1.RoleBindingList
	if err := e.List(t.Context(), &bindings, client.InNamespace(e.namespace)); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(bindings.Items, func(b rbacv1.RoleBinding) bool {
		return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Name == account })
	})
}

// TestServiceAccountOfOthers: who may write a Materialize does not get a ServiceAccount of the namespace that does not allow
// it, and what runs with one that no longer does goes on.
func TestServiceAccountOfOthers(t *testing.T) {
	t.Parallel()
	e := theWorld(t).namespaced(t, "mz")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "builder"}}
	if err := e.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	annotate := func(value string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha2.AnnotationAllowMaterialize, value)
		if err := e.Patch(t.Context(), account, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	builder := func(m *v1alpha2.Materialize) { m.Spec.ServiceAccountName = "builder" }
	if err := e.Create(t.Context(), e.materialize(builder)); err != nil {
		t.Fatal(err)
	}
	e.meets(t, refusesAccount("builder"), tells(v1alpha2.ReasonFailedDeploy, "builder"))
	if e.set(t, 1) != nil || e.grants(t, "builder") {
		t.Fatal("a ServiceAccount that does not allow it is used")
	}

	annotate(`"true"`)
	e.serves(t, 1, "v1")
	e.meets(t, allowsAccount)
	before := e.set(t, 1)
	if before.Spec.Template.Spec.ServiceAccountName != "builder" || !e.grants(t, "builder") {
		t.Fatalf("it runs as %s", before.Spec.Template.Spec.ServiceAccountName)
	}

	annotate(`null`)
	e.edit(t, func(m *v1alpha2.Materialize) { *m.Spec.BalancerdReplicas = 2 })
	e.meets(t, refusesAccount("builder"), tells(v1alpha2.ReasonApplied, "the next rollout is refused"))
	e.edit(t, image("v2"))
	e.meets(t, refusesAccount("builder"), tells(v1alpha2.ReasonFailedDeploy, "builder"))
	if after := e.set(t, 1); after == nil || after.UID != before.UID || after.Generation != before.Generation || e.set(t, 2) != nil || !e.grants(t, "builder") {
		t.Error("what ran has changed, or what is refused is there")
	}

	annotate(`"true"`)
	e.serves(t, 2, "v2")
}

// TestPodSecurity: the pods of an environment are admitted where the level restricted is enforced.
func TestPodSecurity(t *testing.T) {
	t.Parallel()
	e := theWorld(t).namespaced(t, "mz")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}
	enforce := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`
	if err := e.Patch(t.Context(), namespace, client.RawPatch(types.MergePatchType, []byte(enforce))); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "plain"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		// Where the ServiceAccount of the namespace is yet to come, a pod is forbidden as well.
		if err := e.Create(ctx, pod, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "violates PodSecurity") {
			return fmt.Errorf("restricted is not enforced: %v", err)
		}
		return nil
	})
	if err := e.Create(t.Context(), e.materialize()); err != nil {
		t.Fatal(err)
	}
	e.serves(t, 1, "v1")
	e.meets(t, func(e *environment, _ *v1alpha2.Materialize) error {
		for _, app := range []string{"environmentd", "balancerd", "console"} {
			var pods corev1.PodList
			if err := e.List(t.Context(), &pods, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha2.LabelApp: app}); err != nil {
				return err
			}
			if len(pods.Items) != 1 {
				return fmt.Errorf("there are %d pods of %s", len(pods.Items), app)
			}
			for _, volume := range pods.Items[0].Spec.Volumes {
				if app != "environmentd" && volume.Projected != nil {
					return fmt.Errorf("%s has a token", app)
				}
			}
		}
		return nil
	})
}

package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// create makes objects in a cluster, in the test's namespace.
func (s *stage) create(t testing.TB, where *site, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		o = o.DeepCopyObject().(client.Object)
		o.SetNamespace(s.namespace)
		if err := where.Create(t.Context(), o, client.FieldOwner("people")); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// read gets an object of the test's namespace.
func (s *stage) read(t testing.TB, where *site, object client.Object) {
	t.Helper()
	if err := where.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: object.GetName()}, object); err != nil {
		t.Fatal(err)
	}
}

// change reads an object, changes it and writes it back, until nobody was faster.
func (s *stage) change(t testing.TB, where *site, object client.Object, change func()) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := where.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: object.GetName()}, object); err != nil {
			return err
		}
		change()
		return where.Update(ctx, object, client.FieldOwner("people"))
	})
}

// changePolicy is change for the spec of a policy.
func (s *stage) changePolicy(t testing.TB, p *policyv1alpha1.PropagationPolicy, change func(*policyv1alpha1.PropagationSpec)) {
	t.Helper()
	s.change(t, s.hub, p, func() { change(&p.Spec) })
}

func (s *stage) remove(t testing.TB, where *site, object client.Object) {
	t.Helper()
	object.SetNamespace(s.namespace)
	if err := where.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// until reads an object until it is as it should be.
func (s *stage) until(t testing.TB, where *site, object client.Object, is func() error) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := where.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: object.GetName()}, object); err != nil {
			return err
		}
		return is()
	})
}

// gone waits until there is no such object.
func (s *stage) gone(t testing.TB, where *site, object client.Object) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := where.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: object.GetName()}, object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s is still there: %v", object, object.GetName(), err)
		}
		return nil
	})
}

// says waits until the binding of a resource says this of its clusters.
func (s *stage) says(t testing.TB, binding string, reason string, fragments ...string) *workv1alpha2.ResourceBinding {
	t.Helper()
	var b workv1alpha2.ResourceBinding
	wait.Until(t, func(ctx context.Context) error {
		b = workv1alpha2.ResourceBinding{}
		if err := s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: binding}, &b); err != nil {
			return err
		}
		return saying(b.Status.Conditions, workv1alpha2.ConditionFullyApplied, b.Generation, reason, fragments)
	})
	return &b
}

// What bindings say.
const (
	applied  = "FullyAppliedSuccess"
	failed   = "FullyAppliedFailed"
	conflict = "ResourceConflict"
)

// saying checks a condition: its reason, which of them is good news, and what its message has to contain.
func saying(conditions []metav1.Condition, kind string, generation int64, reason string, fragments []string) error {
	c := meta.FindStatusCondition(conditions, kind)
	good := slices.Contains([]string{applied, "AppliedSuccessful", "Applied"}, reason)
	if c == nil || c.Reason != reason || c.ObservedGeneration != generation || (c.Status == metav1.ConditionTrue) != good {
		return fmt.Errorf("%s is %+v, and not %s", kind, c, reason)
	}
	return harness.CheckMessage(c, fragments...)
}

// work is that of a binding for a member, nil if there is none.
func (s *stage) work(ctx context.Context, member, binding string) (*workv1alpha1.Work, error) {
	var works workv1alpha1.WorkList
	if err := s.hub.List(ctx, &works, client.InNamespace("karmada-es-"+member)); err != nil {
		return nil, err
	}
	for i, w := range works.Items {
		if w.Annotations["fairlead.dev/binding"] == s.namespace+"/"+binding {
			return &works.Items[i], nil
		}
	}
	return nil, fmt.Errorf("%s has no Work for %s", binding, member)
}

// manifest waits for the Work of a binding for a member, until what it carries is as it should be.
func (s *stage) manifest(t testing.TB, member, binding string, is func(*unstructured.Unstructured) error) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		w, err := s.work(ctx, member, binding)
		if err != nil {
			return err
		}
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
			return err
		}
		return is(manifest)
	})
}

// processed waits until the operator has dealt with a Work as it is now.
func (s *stage) processed(t testing.TB, member, binding, reason string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		w, err := s.work(ctx, member, binding)
		if err != nil {
			return err
		}
		return saying(w.Status.Conditions, workv1alpha1.ConditionApplied, w.Generation, reason, nil)
	})
}

// trouble waits until the Work, the binding and the policy of a resource all tell of it, in the same words.
func (s *stage) trouble(t testing.TB, member, binding, policy, reason string, fragments ...string) {
	t.Helper()
	ofWork := reason
	if reason == failed {
		ofWork = "AppliedFailed"
	}
	wait.Until(t, func(ctx context.Context) error {
		w, err := s.work(ctx, member, binding)
		if err != nil {
			return err
		}
		return saying(w.Status.Conditions, workv1alpha1.ConditionApplied, w.Generation, ofWork, fragments)
	})
	b := s.says(t, binding, reason, fragments...)
	at := slices.IndexFunc(b.Status.AggregatedStatus, func(i workv1alpha2.AggregatedStatusItem) bool { return i.ClusterName == member })
	if at < 0 || b.Status.AggregatedStatus[at].Applied {
		t.Fatalf("of %s, the binding says %+v", member, b.Status.AggregatedStatus)
	}
	s.reported(t, binding, member, fragments...)
	s.tells(t, policy, ofWork, fragments...)
}

// tells waits until a policy says this of all that it takes.
func (s *stage) tells(t testing.TB, name, reason string, fragments ...string) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	p := policy("", "")
	p.Name = name
	s.until(t, s.hub, p, func() error {
		return saying(p.Status.Conditions, policyv1alpha1.ConditionReady, p.Generation, reason, fragments)
	})
	return p
}

// running waits until a Deployment of a member has all of its pods and nothing is left to be written about it, and gives it.
func (s *stage) running(t testing.TB, where *site, name string) *appsv1.Deployment {
	t.Helper()
	d := deployment(name)
	s.until(t, where, d, func() error {
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable" && d.Status.AvailableReplicas == *d.Spec.Replicas &&
				d.Status.ObservedGeneration == d.Generation {
				return nil
			}
		}
		return fmt.Errorf("Deployment %s has %d pods: %+v", name, d.Status.AvailableReplicas, d.Status.Conditions)
	})
	return d
}

// pods are the UIDs of those that are there.
func (s *stage) pods(t testing.TB, where *site) []string {
	t.Helper()
	return s.podsWith(t, where, nil)
}

// podsOf are those of a Deployment.
func (s *stage) podsOf(t testing.TB, where *site, deployment string) []string {
	t.Helper()
	return s.podsWith(t, where, client.MatchingLabels{"app": deployment})
}

func (s *stage) podsWith(t testing.TB, where *site, labels client.MatchingLabels) []string {
	t.Helper()
	var pods corev1.PodList
	if err := where.List(t.Context(), &pods, client.InNamespace(s.namespace), labels); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range pods.Items {
		all = append(all, p.Name+" "+string(p.UID))
	}
	slices.Sort(all)
	return all
}

// isMarked tells whether an object says that a hub manages it, and isClean that nothing on it speaks of Fairlead.
func isMarked(object client.Object) bool {
	l := object.GetLabels()
	return l["karmada.io/managed"] == "true" && l["fairlead.dev/hub"] != "" && l["fairlead.dev/work"] != ""
}

func isClean(object client.Object) error {
	for _, keys := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for key := range keys {
			if strings.Contains(key, "karmada.io/") || strings.Contains(key, "fairlead.dev/") {
				return errors.New("it has " + key)
			}
		}
	}
	return nil
}

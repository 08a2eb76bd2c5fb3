package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// takeNamespace has a ClusterPropagationPolicy take the namespace of the test itself, in the first member.
func (s *stage) takeNamespace(t testing.TB, protection policyv1alpha1.DeletionProtection) *policyv1alpha1.ClusterPropagationPolicy {
	t.Helper()
	p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Namespace", Name: s.namespace}},
		Placement:         to(member1), ConflictResolution: policyv1alpha1.ConflictOverwrite, DeletionProtection: protection,
	}}
	if err := s.hub.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.hub.Delete(context.Background(), p) })
	wait.Until(t, func(ctx context.Context) error {
		if err := s.hub.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(p.Status.Conditions, policyv1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", p.Status.Conditions)
		}
		return nil
	})
	return p
}

// A Namespace that is deleted on the hub takes all that is in it along in the members only if the policy says so.
func TestDeletionProtection(t *testing.T) {
	t.Parallel()
	deleteOnHub := func(t *testing.T, s *stage) {
		t.Helper()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
		if err := s.hub.Delete(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("by default a Namespace stays, unmarked", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.create(t, s.members[member1], configMap("theirs"))
		p := s.takeNamespace(t, "")
		deleteOnHub(t, s)
		wait.Until(t, func(ctx context.Context) error {
			var events eventsv1.EventList
			if err := s.hub.List(ctx, &events); err != nil {
				return err
			}
			for _, e := range events.Items {
				if e.Reason == "DeletionProtected" && e.Regarding.Name == p.Name && strings.Contains(e.Note, "set spec.deletionProtection of the policy to Disabled") {
					return nil
				}
			}
			return errors.New("no event says that the Namespace stays")
		})
		wait.Until(t, func(ctx context.Context) error {
			var namespace corev1.Namespace
			if err := s.members[member1].Get(ctx, client.ObjectKey{Name: s.namespace}, &namespace); apierrors.IsNotFound(err) {
				return wait.Permanent(err)
			} else if err != nil {
				return err
			}
			return isClean(&namespace)
		})
		s.read(t, s.members[member1], configMap("theirs"))
	})
	t.Run("without protection it goes, and plan counts what goes with it", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.create(t, s.members[member1], configMap("one"), configMap("two"))
		p := s.takeNamespace(t, policyv1alpha1.DeletionProtectionDisabled)
		s.enter(t, 0, "plan cpp "+p.Name, "the deletion of its template would delete with it: ConfigMap 2")
		deleteOnHub(t, s)
		wait.Until(t, func(ctx context.Context) error {
			var namespace corev1.Namespace
			if err := s.members[member1].Get(ctx, client.ObjectKey{Name: s.namespace}, &namespace); !apierrors.IsNotFound(err) {
				return fmt.Errorf("Namespace %s is still in %s: %v", s.namespace, member1, err)
			}
			return nil
		})
	})
}

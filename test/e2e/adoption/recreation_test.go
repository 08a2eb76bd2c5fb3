package adoption_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// replaced waits until the hub has another object of that name.
func (s *stage) replaced(t *testing.T, object client.Object, uid types.UID) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := s.hub.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if object.GetUID() == uid {
			return errors.New("it is the old one")
		}
		return nil
	})
}

// Bindings and Works that a user deletes are recreated, and nothing in the members is deleted.
func TestDeletedRecordsAreRecreated(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	west := s.members[member1]
	s.create(t, west, deployment("it"))
	s.running(t, west, "it")
	s.create(t, s.hub, deployment("it"), policy("apps/v1", "Deployment", overwrite))
	s.says(t, "it-deployment", applied)
	before, pods := s.running(t, west, "it"), s.pods(t, west)
	unharmed := func(t *testing.T) {
		t.Helper()
		now := s.running(t, west, "it")
		if now.UID != before.UID || now.Generation != before.Generation || !isMarked(now) {
			t.Errorf("it is another: %+v", now.ObjectMeta)
		}
		if after := s.pods(t, west); len(after) != len(pods) || after[0] != pods[0] {
			t.Errorf("pods %v became %v", pods, after)
		}
	}
	t.Run("a Work", func(t *testing.T) {
		w, err := s.work(t.Context(), member1, "it-deployment")
		if err != nil {
			t.Fatal(err)
		}
		uid := w.UID
		if err := s.hub.Delete(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		s.replaced(t, &workv1alpha1.Work{ObjectMeta: w.ObjectMeta}, uid)
		s.processed(t, member1, "it-deployment", "AppliedSuccessful")
		s.says(t, "it-deployment", applied)
		unharmed(t)
	})
	t.Run("a binding", func(t *testing.T) {
		b := &workv1alpha2.ResourceBinding{}
		b.Name = "it-deployment"
		s.read(t, s.hub, b)
		uid := b.UID
		s.remove(t, s.hub, b)
		s.replaced(t, b, uid)
		s.says(t, "it-deployment", applied)
		s.processed(t, member1, "it-deployment", "AppliedSuccessful")
		unharmed(t)
	})
	t.Run("the binding of what no policy takes any more", func(t *testing.T) {
		s.remove(t, s.hub, policy("", ""))
		b := &workv1alpha2.ResourceBinding{}
		b.Name = "it-deployment"
		s.until(t, s.hub, b, func() error {
			if b.Annotations["propagationpolicy.karmada.io/name"] != "" {
				return errors.New("the policy has it still")
			}
			return nil
		})
		s.remove(t, s.hub, b)
		s.released(t, "it-deployment")
		now := s.running(t, west, "it")
		if err := isClean(now); err != nil || now.UID != before.UID || now.Generation != before.Generation {
			t.Errorf("it is another: %+v, %v", now.ObjectMeta, err)
		}
	})
}

// Labels of ownership that were copied to another object do not make Fairlead its owner.
func TestCopiedOwnershipLabels(t *testing.T) {
	t.Parallel()
	s, other := newStage(t), newStage(t)
	s.create(t, s.hub, configMap("it", "a", "1"), policy("v1", "ConfigMap"))
	s.says(t, "it-configmap", applied)
	original := configMap("it")
	s.read(t, s.members[member1], original)
	copied := configMap("it", "a", "mine")
	copied.Labels = original.Labels
	other.create(t, other.members[member1], copied)
	other.create(t, other.hub, configMap("it", "a", "hub"), policy("v1", "ConfigMap"))
	other.says(t, "it-configmap", conflict, "exists in cluster member1 already")
	now := configMap("it")
	other.read(t, other.members[member1], now)
	if now.Data["a"] != "mine" {
		t.Errorf("it was written over: %v", now.Data)
	}
}

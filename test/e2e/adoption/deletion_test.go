package adoption_test

import (
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// released waits until the hub has let go of a resource.
func (s *stage) released(t testing.TB, binding string) {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	b.Name = binding
	s.gone(t, s.hub, b)
	for member := range s.members {
		if w, err := s.work(t.Context(), member, binding); err == nil {
			t.Errorf("Work %s/%s is still there", w.Namespace, w.Name)
		}
	}
}

// pass takes another resource all the way, after which all that was written to the hub before has been heard of, too.
func (s *stage) pass(t testing.TB, name string) {
	t.Helper()
	p := policy("v1", "ConfigMap", everywhere)
	p.Name = name
	p.Spec.ResourceSelectors[0].Name = name
	s.create(t, s.hub, configMap(name), p)
	s.says(t, name+"-configmap", applied)
}

func TestTemplateDeleted(t *testing.T) {
	t.Parallel()
	t.Run("what is managed goes from the members", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.create(t, s.members[member1], configMap("it"))
		s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap", everywhere, overwrite))
		s.says(t, "it-configmap", applied, "applied in all 2 clusters")
		s.remove(t, s.hub, configMap("it"))
		s.released(t, "it-configmap")
		for _, m := range s.members {
			s.gone(t, m, configMap("it"))
		}
	})
	t.Run("what is to be preserved stays, and nothing on it speaks of the hub", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.create(t, s.members[member1], deployment("it"))
		before := s.running(t, s.members[member1], "it")
		s.create(t, s.hub, deployment("it"), policy("apps/v1", "Deployment", everywhere, overwrite, preserve))
		s.says(t, "it-deployment", applied)
		s.remove(t, s.hub, deployment("it"))
		s.released(t, "it-deployment")
		for name, m := range s.members {
			now := s.running(t, m, "it")
			if err := isClean(now); err != nil {
				t.Errorf("in %s: %v", name, err)
			}
			if name == member1 && (now.UID != before.UID || now.Generation != before.Generation) {
				t.Errorf("generation %d became %d", before.Generation, now.Generation)
			}
		}
	})
	t.Run("what is gone already blocks nothing", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		p := policy("v1", "ConfigMap")
		s.create(t, s.hub, configMap("it"), p)
		s.says(t, "it-configmap", applied)
		s.changePolicy(t, p, suspend)
		s.says(t, "it-configmap", "DispatchingSuspended")
		s.remove(t, s.members[member1], configMap("it"))
		s.remove(t, s.hub, configMap("it"))
		s.released(t, "it-configmap")
	})
	t.Run("what was never taken over blocks nothing, and stays", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		foreign := configMap("it", "a", "b")
		s.create(t, s.members[member1], foreign)
		s.read(t, s.members[member1], foreign)
		s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap", everywhere))
		s.says(t, "it-configmap", conflict, "applied in 1 of 2 clusters; ConfigMap "+s.namespace+"/it exists in cluster member1 already")
		s.remove(t, s.hub, configMap("it"))
		s.released(t, "it-configmap")
		s.gone(t, s.members[member2], configMap("it"))
		now := configMap("it")
		s.read(t, s.members[member1], now)
		if now.ResourceVersion != foreign.ResourceVersion {
			t.Errorf("it was written to: %s became %s", foreign.ResourceVersion, now.ResourceVersion)
		}
	})
	t.Run("and made anew at once, it is made anew in the members", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.create(t, s.hub, configMap("it", "a", "1"), policy("v1", "ConfigMap", everywhere))
		s.says(t, "it-configmap", applied)
		s.remove(t, s.hub, configMap("it"))
		s.create(t, s.hub, configMap("it", "a", "2"))
		for _, m := range s.members {
			s.until(t, m, configMap("it"), func() error { return nil })
			now := configMap("it")
			s.until(t, m, now, has(now, "a", "2"))
		}
	})
}

// What a policy has taken to members stays there, and stays managed, when the policy goes.
func TestPolicyDeleted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := policy("v1", "ConfigMap", everywhere)
	p.Spec.ResourceSelectors[0].Name = "it"
	s.create(t, s.hub, configMap("it"), p)
	s.says(t, "it-configmap", applied)
	before := s.versions(t, configMap("it"))
	s.remove(t, s.hub, p)
	s.gone(t, s.hub, policy("v1", "ConfigMap"))
	s.pass(t, "another")
	if after := s.versions(t, configMap("it")); after != before {
		t.Errorf("it was written to: %v became %v", before, after)
	}
	t.Run("and goes with its template", func(t *testing.T) {
		s.remove(t, s.hub, configMap("it"))
		s.released(t, "it-configmap")
		for _, m := range s.members {
			s.gone(t, m, configMap("it"))
		}
	})
}

// versions are those of an object in both members.
func (s *stage) versions(t testing.TB, object client.Object) [2]string {
	t.Helper()
	var all [2]string
	for i, member := range []string{member1, member2} {
		s.read(t, s.members[member], object)
		all[i] = string(object.GetUID()) + " " + object.GetResourceVersion()
	}
	return all
}

// The last word of the policy counts, also if it is said together with what takes the cluster out.
func TestPlacementLeavesOutAClusterAndPreserves(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := policy("v1", "ConfigMap", everywhere)
	s.create(t, s.hub, configMap("it"), p)
	s.says(t, "it-configmap", applied)
	s.changePolicy(t, p, func(p *policyv1alpha1.PropagationSpec) {
		p.Placement, p.PreserveResourcesOnDeletion = to(member2), ptr.To(true)
	})
	now := configMap("it")
	s.until(t, s.members[member1], now, func() error { return isClean(now) })
}

func TestPlacementLeavesOutACluster(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := policy("v1", "ConfigMap", everywhere)
	s.create(t, s.hub, configMap("it"), p)
	s.says(t, "it-configmap", applied)
	s.changePolicy(t, p, func(p *policyv1alpha1.PropagationSpec) { p.Placement = to(member2) })
	s.gone(t, s.members[member1], configMap("it"))
	s.says(t, "it-configmap", applied, "applied in cluster "+member2)
	now := configMap("it")
	s.read(t, s.members[member2], now)
	if !isMarked(now) {
		t.Errorf("labels %v", now.Labels)
	}
}

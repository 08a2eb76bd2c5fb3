package rollout

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// scene is what is observed, put together by hand.
type scene struct {
	t testing.TB
	Observed
}

// seeing is a resource, and nothing that belongs to it.
func seeing(t testing.TB, b maker) scene {
	t.Helper()
	s := scene{t, Observed{
		Materialize: b.Materialize, Hash: hashOf(t, b), HashVersion: currentHasher.version,
		Generations: map[int64]*Generation{}, SharedObjects: map[passage.Object]*unstructured.Unstructured{},
	}}
	if name := b.Spec.ServiceAccountName; name != "" {
		s.ServiceAccounts = map[string]ServiceAccount{name: {Exists: true, Allowed: true}}
	}
	s.rehash(currentHasher)
	return s
}

// account is a ServiceAccount as it was found.
func (s scene) account(name string, found ServiceAccount) scene {
	s.ServiceAccounts = map[string]ServiceAccount{name: found}
	return s
}

// generation is there, made from a spec, with its pods ready.
func (s scene) generation(number int64, spec maker) scene {
	s.t.Helper()
	made := spec.DeepCopy()
	made.Status, made.UID = s.Materialize.Status, s.Materialize.UID
	g := &Generation{Number: number}
	s.Generations[number] = g
	for _, object := range objects.ForGeneration(s.Materialize, number, objects.NewRecord(made, hashOf(s.t, spec), number), false) {
		if object.GetKind() == "StatefulSet" {
			object.Object["status"] = map[string]any{
				"replicas": int64(1), "readyReplicas": int64(1), "updatedReplicas": int64(1),
			}
		}
		if err := g.add(s.Materialize, object, currentHasher); err != nil {
			s.t.Fatal(err)
		}
	}
	return s
}

// unready has pods of the generation that are not.
func (s scene) unready(number int64) scene {
	s.Generations[number].StatefulSet.Status.ReadyReplicas = 0
	return s
}

// without is a generation that has lost its object of a kind.
func (s scene) without(number int64, kind string) scene {
	g := s.Generations[number]
	left := &Generation{Number: number}
	for _, object := range g.Objects {
		if object.GetKind() != kind {
			if err := left.add(s.Materialize, object, currentHasher); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.Generations[number] = left
	return s
}

// going is a generation whose StatefulSet is being deleted.
func (s scene) going(number int64) scene {
	now := metav1.NewTime(epoch)
	g := s.Generations[number]
	g.StatefulSet.DeletionTimestamp = &now
	for _, object := range g.Objects {
		if object.GetKind() == "StatefulSet" {
			object.SetDeletionTimestamp(&now)
		}
	}
	return s
}

// losing is a generation whose objects of a kind are being deleted.
func (s scene) losing(number int64, kind string) scene {
	now := metav1.NewTime(epoch)
	for _, object := range s.Generations[number].Objects {
		if object.GetKind() == kind {
			object.SetDeletionTimestamp(&now)
		}
	}
	return s
}

// foreign is a generation that somebody else has made.
func (s scene) foreign(number int64) scene {
	set := objects.EnvironmentdStatefulSet(s.Materialize, number)
	set.Namespace = s.Materialize.Namespace
	set.Spec.Selector.MatchLabels = map[string]string{"theirs": fmt.Sprint(number)}
	stray := objects.ToUnstructured(objects.KindStatefulSet, set)
	s.Generations[number] = &Generation{Number: number, StatefulSet: set, Foreign: true, Unlabelled: []*unstructured.Unstructured{stray}}
	return s
}

// kept is the same as it was before Fairlead ended it.
func (s scene) kept(number int64) scene {
	s.t.Helper()
	g := s.Generations[number]
	backup := objects.NewStatefulSetBackup(s.Materialize, number, g.unlabelledStatefulSet())
	if err := g.add(s.Materialize, backup, currentHasher); err != nil {
		s.t.Fatal(err)
	}
	return s
}

// ended is one that Fairlead has ended.
func (s scene) ended(number int64) scene {
	s.kept(number)
	g := s.Generations[number]
	g.Foreign, g.StatefulSet, g.Unlabelled = false, nil, nil
	return s
}

// complete has all that stands in front of what serves.
func (s scene) complete() scene {
	s.t.Helper()
	all, err := objects.Shared(s.Materialize, s.activeConfig())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, object := range all {
		s.SharedObjects[objects.Identity(object)] = object
	}
	return s
}

// leaves has what another spec has left behind.
func (s scene) leaves(b maker) scene {
	s.t.Helper()
	for _, object := range seeing(s.t, b).complete().SharedObjects {
		if s.SharedObjects[objects.Identity(object)] == nil {
			s.SharedObjects[objects.Identity(object)] = object
		}
	}
	return s
}

// leadTo is where the public Service leads.
func (s scene) leadTo(number int64) scene {
	s.t.Helper()
	public := objects.SetOwner(s.Materialize,
		objects.ToUnstructured(objects.KindService, objects.PublicService(s.Materialize, s.selector(s.Observed.generation(number)))))
	s.SharedObjects[objects.Identity(public)] = public
	return s
}

func (s scene) hears(status v1alpha2.LeaderStatus) scene {
	s.Leader = v1alpha2.LeaderAnswer{Status: status}
	return s
}

func (s scene) hearsNothing() scene {
	s.Leader = v1alpha2.LeaderAnswer{Status: v1alpha2.LeaderUnknown, Message: "environmentd does not answer: connection refused"}
	return s
}

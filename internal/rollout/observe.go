package rollout

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/environmentd"
	"github.com/fairlead/fairlead/internal/rollout/hash"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// Observed is all that a plan is made of, besides the time.
type Observed struct {
	Materialize *v1alpha2.Materialize
	// Hash of the spec, by today's algorithm, and the version of that.
	Hash        string
	HashVersion int32
	// Generations by their numbers, each with what there is of it.
	Generations map[int64]*Generation
	// Fixtures are what all generations share.
	SharedObjects map[passage.Object]*unstructured.Unstructured
	// Relabelled are the hashes of the status by today's algorithm, where they are by another one.
	Relabelled *Hashes
	// Leader is what the next generation says, if it was worth asking.
	Leader Answer
	// UnknownHash is why hashes in the status cannot be compared.
	UnknownHash error
}

// Answer is what an environmentd said, or why there was no answer. The zero Answer was never asked for.
type Answer struct {
	Status v1alpha2.LeaderStatus
	Err    error
}

// Hashes are those in a status.
type Hashes struct{ Completed, Requested string }

// algorithms are those that a spec can be hashed with, and which one is today's.
type algorithms struct {
	version int32
	with    func(version int32, m *v1alpha2.Materialize) (string, error)
}

func (a algorithms) of(m *v1alpha2.Materialize) (string, error) { return a.with(a.version, m) }

var hashAlgorithms = algorithms{hash.Version, hash.With}

// Observe reads all that there is of an environment, and asks its next generation how far it is.
func Observe(ctx context.Context, m *v1alpha2.Materialize, reader Reader, leaders LeaderReader) (Observed, error) {
	return observe(ctx, m, reader, leaders, hashAlgorithms)
}

func observe(ctx context.Context, m *v1alpha2.Materialize, reader Reader, leaders LeaderReader, hashes algorithms) (Observed, error) {
	o := Observed{Materialize: m, Generations: map[int64]*Generation{}, SharedObjects: map[passage.Object]*unstructured.Unstructured{}}
	var err error
	if o.Hash, err = hashes.of(m); err != nil {
		return o, fmt.Errorf("hash the spec of Materialize %s/%s: %w", m.Namespace, m.Name, err)
	}
	if m.Status.ResourceID != "" {
		if err := o.readObjects(ctx, reader, hashes); err != nil {
			return o, err
		}
	}
	o.HashVersion = hashes.version
	o.relabel(hashes)
	if o.needsLeaderStatus() {
		o.Leader.Status, o.Leader.Err = leaders.Status(ctx, o.next().address(m))
	}
	return o, nil
}

func (o *Observed) readObjects(ctx context.Context, reader Reader, hashes algorithms) error {
	m := o.Materialize
	owned, err := reader.Owned(ctx, m)
	if err != nil {
		return fmt.Errorf("list the objects of Materialize %s/%s: %w", m.Namespace, m.Name, err)
	}
	for _, object := range owned {
		number := objects.GenerationOf(object)
		if number == 0 {
			o.SharedObjects[objects.Identity(object)] = object
			continue
		}
		g := o.generation(number)
		o.Generations[number] = g
		if err := g.add(object, hashes); err != nil {
			return err
		}
	}
	concerned := []int64{m.Status.ActiveGeneration}
	if o.promoting() || o.Hash != m.Status.LastCompletedRolloutHash {
		concerned = append(concerned, m.Status.ActiveGeneration+1)
	}
	for _, number := range concerned {
		if number == 0 {
			continue
		}
		g := o.generation(number)
		if err := g.findStatefulSet(ctx, m, reader, hashes); err != nil {
			return err
		}
		// Of what Fairlead has made itself, all is labelled.
		if len(concerned) > 1 && (g.Foreign || number == m.Status.ActiveGeneration && g.Record == nil) {
			if err := g.findUnlabelled(ctx, m, reader); err != nil {
				return err
			}
		}
		if len(g.Unlabelled) > 0 {
			o.Generations[number] = g
		}
	}
	return nil
}

// findSet looks for a StatefulSet that carries no label: to apply over what somebody else has made would change it, and
// restart its pods.
func (g *Generation) findStatefulSet(ctx context.Context, m *v1alpha2.Materialize, reader Reader, hashes algorithms) error {
	if g.StatefulSet != nil {
		return nil
	}
	set, err := reader.Live(ctx, objects.KindStatefulSet, client.ObjectKey{Namespace: m.Namespace, Name: objects.NamesOf(m).Generation(g.Number)})
	if err != nil || set == nil {
		return err
	}
	g.Unlabelled = append(g.Unlabelled, set)
	if controller := metav1.GetControllerOf(set); set.GetAnnotations()[v1alpha2.AnnotationRolloutHash] != "" && (controller == nil || controller.UID == m.UID) {
		// Somebody has taken its label or its owner away, which is put right like any other change.
		return g.add(set, hashes)
	}
	g.Foreign, g.StatefulSet = true, &appsv1.StatefulSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(set.Object, g.StatefulSet); err != nil {
		return fmt.Errorf("read StatefulSet %s: %w", set.GetName(), err)
	}
	return nil
}

// findStrays looks for what else somebody made for a generation, to remove it together with that.
func (g *Generation) findUnlabelled(ctx context.Context, m *v1alpha2.Materialize, reader Reader) error {
	n := objects.NamesOf(m)
	for _, wanted := range []struct {
		kind schema.GroupVersionKind
		name string
	}{{objects.KindService, n.Generation(g.Number)}, {objects.KindService, n.PubSub(g.Number)}, {objects.KindConfigMap, n.Generation(g.Number)}} {
		object, err := reader.Live(ctx, wanted.kind, client.ObjectKey{Namespace: m.Namespace, Name: wanted.name})
		if err != nil {
			return err
		}
		if object != nil && g.find(objects.Identity(object)) == nil && slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.UID == m.UID }) {
			g.Unlabelled = append(g.Unlabelled, object)
		}
	}
	return nil
}

// generation of a number, with nothing in it if there is none.
func (o Observed) generation(number int64) *Generation {
	if g := o.Generations[number]; g != nil {
		return g
	}
	return &Generation{Number: number}
}

func (g *Generation) add(object *unstructured.Unstructured, hashes algorithms) error {
	g.Objects = append(g.Objects, object)
	var err error
	switch object.GroupVersionKind() {
	case objects.KindConfigMap:
		if object.GetDeletionTimestamp() != nil {
			return nil
		}
		if inherited := objects.ReadStatefulSetBackup(object); inherited != nil {
			g.Backup = inherited
			return nil
		}
		if g.Record, err = objects.ReadRecord(object); err != nil {
			// It tells nothing, so there is none: what can be made again will be.
			g.Record = nil
			return nil
		}
		if g.Hash, err = hashes.of(g.Record.Materialize); err != nil {
			return fmt.Errorf("hash the spec of generation %d: %w", g.Number, err)
		}
	case objects.KindStatefulSet:
		g.StatefulSet = &appsv1.StatefulSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, g.StatefulSet); err != nil {
			return fmt.Errorf("read StatefulSet %s: %w", object.GetName(), err)
		}
		if g.Record == nil {
			g.Hash = g.StatefulSet.Annotations[v1alpha2.AnnotationRolloutHash]
		}
	}
	return nil
}

func (g *Generation) address(m *v1alpha2.Materialize) environmentd.Address {
	return environmentd.Address{Name: m.Name, Namespace: m.Namespace, ResourceID: m.Status.ResourceID, Generation: g.Number}
}

// relabel finds out what the hashes in the status are by today's algorithm. A hash that nothing left is of stays as it is.
func (o *Observed) relabel(hashes algorithms) {
	status := &o.Materialize.Status
	version := status.RolloutHashVersion
	if version == hashes.version || status.LastCompletedRolloutHash == "" && status.RequestedRolloutHash == "" {
		return
	}
	if version == 0 {
		// Written before there was more than one.
		version = 1
	}
	specs := []*v1alpha2.Materialize{o.Materialize}
	for _, g := range o.Generations {
		if g.Record != nil {
			specs = append(specs, g.Record.Materialize)
		}
	}
	kept := Hashes{status.LastCompletedRolloutHash, status.RequestedRolloutHash}
	for _, spec := range specs {
		was, err := hashes.with(version, spec)
		if err != nil {
			o.UnknownHash = err
			return
		}
		is, err := hashes.of(spec)
		if err != nil {
			o.UnknownHash = err
			return
		}
		for _, h := range []*string{&kept.Completed, &kept.Requested} {
			if *h == was {
				*h = is
			}
		}
	}
	o.Relabelled = &kept
}

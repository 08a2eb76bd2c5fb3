package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Observed is the input of a plan, besides the time.
type Observed struct {
	Materialize *v1alpha2.Materialize
	// Hash of the spec by the current algorithm, and the version of that algorithm.
	Hash        string
	HashVersion int32
	// Generations by number.
	Generations map[int64]*Generation
	// SharedObjects are the objects that all generations share.
	SharedObjects map[passage.Object]*unstructured.Unstructured
	// InheritedObjects are those of them that another operator has made, as long as a generation of that operator is active.
	InheritedObjects map[passage.Object]*unstructured.Unstructured
	// Rehashed are the hashes of the status by the current algorithm. Nil: the status has them already.
	Rehashed *Hashes
	// Leader is the answer of the next generation's environmentd. The zero answer was not asked for.
	Leader v1alpha2.LeaderAnswer
	// UnknownHash is why the hashes in the status cannot be compared.
	UnknownHash error
	// Unlisted are kinds whose objects could not be listed, and are not planned.
	Unlisted []schema.GroupVersionKind
	// ServiceAccounts that specs name, by name.
	ServiceAccounts map[string]ServiceAccount
	// NoCertManager holds for an API server that does not serve Certificates.
	NoCertManager bool
}

// Hashes are the two hashes of a status.
type Hashes struct{ Completed, Requested string }

// hasher hashes specs by the current algorithm, and by that of any version.
type hasher struct {
	version int32
	of      func(*v1alpha2.Materialize) string
	with    func(version int32, m *v1alpha2.Materialize) (string, error)
}

var currentHasher = hasher{hash.Version, hash.Of, hash.With}

// Observe reads the objects of an environment, and asks environmentd of its next generation for its status.
func Observe(ctx context.Context, m *v1alpha2.Materialize, reader Reader, ask LeaderReader) (Observed, error) {
	return observe(ctx, m, reader, ask, currentHasher)
}

func observe(ctx context.Context, m *v1alpha2.Materialize, reader Reader, ask LeaderReader, hashes hasher) (Observed, error) {
	o := Observed{
		Materialize: m, Hash: hashes.of(m), HashVersion: hashes.version,
		Generations: map[int64]*Generation{}, SharedObjects: map[passage.Object]*unstructured.Unstructured{},
	}
	if m.Status.ResourceID != "" {
		if err := o.readObjects(ctx, reader, hashes); err != nil {
			return o, err
		}
	}
	if err := o.ReadServiceAccount(ctx, m, reader); err != nil {
		return o, err
	}
	o.rehash(hashes)
	if o.needsLeaderStatus() {
		o.Leader = ask(ctx, o.Next().address(m))
	}
	return o, nil
}

// ReadServiceAccount reads the ServiceAccount that a spec names, which may be one that is only proposed.
func (o *Observed) ReadServiceAccount(ctx context.Context, m *v1alpha2.Materialize, reader Reader) error {
	name := namedAccount(m)
	if _, known := o.ServiceAccounts[name]; known || name == "" {
		return nil
	}
	object, err := reader.Live(ctx, objects.KindServiceAccount, client.ObjectKey{Namespace: m.Namespace, Name: name})
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read ServiceAccount %s/%s: %w", m.Namespace, name, err)
	}
	account := ServiceAccount{Exists: object != nil, Err: err}
	if object != nil {
		account.Allowed = object.GetAnnotations()[v1alpha2.AnnotationAllowMaterialize] == "true" ||
			slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return m.UID != "" && owner.UID == m.UID })
	}
	o.ServiceAccounts = maps.Clone(o.ServiceAccounts)
	if o.ServiceAccounts == nil {
		o.ServiceAccounts = map[string]ServiceAccount{}
	}
	o.ServiceAccounts[name] = account
	return nil
}

func (o *Observed) readObjects(ctx context.Context, reader Reader, hashes hasher) error {
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
		if err := g.add(m, object, hashes); err != nil {
			return err
		}
	}
	active := m.Status.ActiveGeneration
	for _, number := range []int64{active, active + 1} {
		if number == 0 || number > active && !o.rollsOut() {
			continue
		}
		g := o.generation(number)
		if err := g.findStatefulSet(ctx, m, reader, hashes); err != nil {
			return err
		}
		if len(g.Unlabelled) > 0 {
			o.Generations[number] = g
		}
		// All objects that Fairlead has created are labelled.
		if o.rollsOut() && (g.Foreign || number == active && g.Record == nil) {
			if err := g.findUnlabelled(ctx, m, reader); err != nil {
				return err
			}
		}
		if len(g.Unlabelled) > 0 {
			o.Generations[number] = g
		}
	}
	return o.readInherited(ctx, reader)
}

// readInherited looks for shared objects that another operator has made: to apply Fairlead's would restart balancerd and the console,
// and take permissions from environmentd that runs.
func (o *Observed) readInherited(ctx context.Context, reader Reader) error {
	if active := o.Active(); active == nil || !active.Foreign {
		return nil
	}
	o.InheritedObjects = map[passage.Object]*unstructured.Unstructured{}
	m := o.Materialize
	for _, key := range objects.SharedNames(m) {
		if o.SharedObjects[key] != nil {
			continue
		}
		object, err := reader.Live(ctx, schema.FromAPIVersionAndKind(key.APIVersion, key.Kind), client.ObjectKey{Namespace: key.Namespace, Name: key.Name})
		if err != nil {
			return err
		}
		if object != nil && slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.UID == m.UID }) {
			o.InheritedObjects[key] = object
		}
	}
	return nil
}

// rollsOut tells whether another generation than the active one is to serve.
func (o Observed) rollsOut() bool { return o.Promoting() || o.Hash != o.Completed() }

// findStatefulSet looks for an unlabelled StatefulSet: to apply over one that another operator created would restart its
// pods.
func (g *Generation) findStatefulSet(ctx context.Context, m *v1alpha2.Materialize, reader Reader, hashes hasher) error {
	if g.StatefulSet != nil {
		return nil
	}
	set, err := reader.Live(ctx, objects.KindStatefulSet, client.ObjectKey{Namespace: m.Namespace, Name: objects.NamesOf(m).Generation(g.Number)})
	if err != nil || set == nil {
		return err
	}
	g.Unlabelled = append(g.Unlabelled, set)
	if controller := metav1.GetControllerOf(set); set.GetAnnotations()[v1alpha2.AnnotationRolloutHash] != "" && (controller == nil || controller.UID == m.UID) {
		// A client removed the label or the owner of the StatefulSet, which is corrected like other drift.
		return g.add(m, set, hashes)
	}
	g.Foreign = true
	return g.readStatefulSet(set)
}

func (g *Generation) readStatefulSet(set *unstructured.Unstructured) error {
	g.StatefulSet = &appsv1.StatefulSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(set.Object, g.StatefulSet); err != nil {
		return fmt.Errorf("read StatefulSet %s: %w", set.GetName(), err)
	}
	return nil
}

// findUnlabelled looks for other objects that another operator created for a generation, to delete them together with it.
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

// generation returns the generation of a number, an empty one if there is none.
func (o Observed) generation(number int64) *Generation {
	if g := o.Generations[number]; g != nil {
		return g
	}
	return &Generation{Number: number}
}

func (g *Generation) add(m *v1alpha2.Materialize, object *unstructured.Unstructured, hashes hasher) error {
	g.Objects = append(g.Objects, object)
	switch object.GroupVersionKind() {
	case objects.KindConfigMap:
		if object.GetDeletionTimestamp() != nil {
			return nil
		}
		if backup := objects.ReadStatefulSetBackup(m, g.Number, object); backup != nil {
			g.Backup = backup
			return nil
		}
		// An unreadable record counts as missing, and is created again if possible.
		if g.Record = objects.ReadRecord(m, g.Number, object); g.Record != nil {
			g.Hash = hashes.of(g.Record.Materialize)
		}
	case objects.KindStatefulSet:
		if err := g.readStatefulSet(object); err != nil {
			return err
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

// rehash translates the hashes of the status to the current algorithm. A hash that matches no known spec stays as it is.
func (o *Observed) rehash(hashes hasher) {
	status := &o.Materialize.Status
	version := status.RolloutHashVersion
	if version == hashes.version || status.LastCompletedRolloutHash == "" && status.RequestedRolloutHash == "" {
		return
	}
	if version == 0 {
		// Written before the version was recorded.
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
		for _, h := range []*string{&kept.Completed, &kept.Requested} {
			if *h == was {
				*h = hashes.of(spec)
			}
		}
	}
	o.Rehashed = &kept
}

package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// cluster is a Kubernetes in memory with a clock of its own, and as much of one as the controller reads and writes. A
// rollout of hours takes it milliseconds, and it can be stopped between any two writes.
type cluster struct {
	t       testing.TB
	now     time.Time
	version int
	m       *v1alpha2.Materialize // nil once it is gone
	objects map[passage.Object]*unstructured.Unstructured
	// daemons are the environmentds that run, by the UID of their StatefulSet.
	daemons map[types.UID]*daemon
	coming  []scheduled
	process *process

	// starts is how long pods take, and catchesUp an environmentd from then on. Nothing: it never does.
	starts, catchesUp time.Duration
	// refuses is why an object cannot be applied; nil refuses nothing.
	refuses func(passage.Object) error
	hashes  hasher
	writes  int
	tell    func(format string, args ...any)
}

// scheduled is something that happens by itself later.
type scheduled struct {
	at       time.Time
	reported string
	do       func()
}

// How long things take.
const (
	podEnds   = 5 * time.Second
	takesOver = 3 * time.Second
)

// daemon is an environmentd.
type daemon struct {
	status v1alpha2.LeaderStatus
	// spec that it was made from.
	spec *v1alpha2.Materialize
	// late is one whose StatefulSet was made when there was no way back.
	late bool
}

func newCluster(t testing.TB) *cluster {
	c := &cluster{
		t: t, now: epoch, m: makeMaterialize().Materialize,
		objects: map[passage.Object]*unstructured.Unstructured{}, daemons: map[types.UID]*daemon{},
		starts: 10 * time.Second, catchesUp: 20 * time.Second, hashes: currentHasher,
		tell: func(string, ...any) {},
	}
	c.m.ResourceVersion = c.nextVersion()
	return c
}

func (c *cluster) nextVersion() string {
	c.version++
	return strconv.Itoa(c.version)
}

// later lets something happen after a while.
func (c *cluster) later(after time.Duration, reported string, do func()) {
	c.coming = append(c.coming, scheduled{c.now.Add(after), reported, do})
	slices.SortStableFunc(c.coming, func(a, b scheduled) int { return a.at.Compare(b.at) })
}

// on is something that people do, so many seconds after the beginning.
func (c *cluster) on(second int, reported string, do func()) {
	c.later(at(second).Sub(c.now), "* "+reported, do)
}

// edit is what people do to the resource.
func (c *cluster) edit(how func(maker)) {
	before := c.m.Spec.DeepCopy()
	how(maker{c.m})
	if fmt.Sprint(before) != fmt.Sprint(c.m.Spec.DeepCopy()) {
		c.m.Generation++
	}
	c.m.ResourceVersion = c.nextVersion()
	c.changed()
}

func (c *cluster) changed() {
	if c.process != nil {
		c.process.triggered = true
	}
}

// name of an object without what all names begin with.
func name(key passage.Object) string { return strings.TrimPrefix(key.Name, "mz"+testID+"-") }

// set is the StatefulSet of a name.
func (c *cluster) set(name string) *unstructured.Unstructured {
	return c.objects[passage.Object{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: name}]
}

// wrote is what becomes of an object that was applied.
func (c *cluster) wrote(key passage.Object, object *unstructured.Unstructured) {
	before := c.objects[key]
	verb, same := "create", false
	if before == nil {
		object.SetUID(types.UID("uid-" + c.nextVersion()))
		object.SetGeneration(1)
	} else {
		verb, same = "change", sameSpec(before, object)
		object.SetUID(before.GetUID())
		object.SetGeneration(before.GetGeneration() + 1)
	}
	if same {
		object.SetGeneration(before.GetGeneration())
		object.Object["status"] = before.Object["status"]
	}
	object.SetResourceVersion(c.nextVersion())
	c.objects[key] = object
	detail := ""
	if key.Kind == "Service" && name(key) == "environmentd" {
		detail = ", which leads to generation " + c.public()
	}
	if key.Kind == "RoleBinding" && verb == "change" {
		detail = ", which grants to " + strings.Join(subjectsOf(object), " and ")
	}
	c.tell("%s   %s %s%s", verb, key.Kind, name(key), detail)
	if key.Kind == "StatefulSet" && !same {
		c.start(key, object)
	}
	c.changed()
}

// subjectsOf are the names of the subjects of a RoleBinding.
func subjectsOf(object *unstructured.Unstructured) []string {
	var names []string
	subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
	for _, subject := range subjects {
		names = append(names, subject.(map[string]any)["name"].(string))
	}
	return names
}

func sameSpec(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object["spec"], b.Object["spec"])
}

// public is the generation that users are led to.
func (c *cluster) public() string {
	for key, object := range c.objects {
		if key.Kind == "Service" && name(key) == "environmentd" {
			selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
			return selector[v1alpha2.LabelGeneration]
		}
	}
	return ""
}

// start is what the controller of StatefulSets and a kubelet do.
func (c *cluster) start(key passage.Object, set *unstructured.Unstructured) {
	uid, generation, late := set.GetUID(), set.GetGeneration(), c.promoting()
	var spec *v1alpha2.Materialize
	record := key
	record.APIVersion, record.Kind = "v1", "ConfigMap"
	if configMap := c.objects[record]; configMap != nil {
		if r := objects.ReadRecord(c.m, objects.GenerationOf(configMap), configMap); r != nil {
			spec = r.Materialize
		}
	}
	delete(c.daemons, uid)
	there := func() bool {
		now := c.objects[key]
		return now != nil && now.GetUID() == uid && now.GetGeneration() == generation && now.GetDeletionTimestamp() == nil
	}
	if c.starts == 0 {
		return
	}
	c.later(c.starts, "", func() {
		if !there() {
			return
		}
		revision := fmt.Sprint("revision-", generation)
		status := map[string]any{
			"observedGeneration": generation, "replicas": int64(1), "readyReplicas": int64(1), "updatedReplicas": int64(1),
			"currentRevision": revision, "updateRevision": revision,
		}
		c.objects[key].Object["status"] = status
		c.objects[key].SetResourceVersion(c.nextVersion())
		c.daemons[uid] = &daemon{v1alpha2.LeaderInitializing, spec, late}
		c.tell("         the pod of %s is ready", name(key))
		c.changed()
	})
	if c.catchesUp == 0 {
		return
	}
	c.later(c.starts+c.catchesUp, "", func() {
		if d := c.daemons[uid]; d != nil && d.status == v1alpha2.LeaderInitializing && there() {
			d.status = v1alpha2.LeaderReadyToPromote
			c.tell("         %s has caught up", name(key))
		}
	})
}

func (c *cluster) removed(key passage.Object, foreground bool) {
	object := c.objects[key]
	if !foreground {
		c.tell("delete   %s %s", key.Kind, name(key))
		delete(c.objects, key)
		c.changed()
		return
	}
	deleted := metav1.NewTime(c.now)
	object.SetDeletionTimestamp(&deleted)
	object.SetResourceVersion(c.nextVersion())
	delete(c.daemons, object.GetUID())
	c.tell("delete   %s %s, after its pods", key.Kind, name(key))
	c.later(podEnds, "", func() {
		if c.objects[key] != nil && c.objects[key].GetUID() == object.GetUID() {
			delete(c.objects, key)
			c.tell("         %s is gone", name(key))
			c.changed()
		}
	})
	c.changed()
}

// api is the API server, and every environmentd, as one process of the controller sees them.
type api struct {
	client.Client
	*cluster
	// mayWrite is asked before each write. A process that may not is dead, and writes nothing any more.
	mayWrite func() bool
	dead     bool
}

var errKilled = errors.New("killed")

func (a *api) alive() bool {
	a.dead = a.dead || !a.mayWrite()
	if !a.dead {
		a.writes++
	}
	return !a.dead
}

func (a *api) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if a.m == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "materializes"}, key.Name)
	}
	a.m.DeepCopyInto(object.(*v1alpha2.Materialize))
	return nil
}

func (a *api) Owned(_ context.Context, m *v1alpha2.Materialize) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, key := range slices.SortedFunc(maps.Keys(a.objects), func(x, y passage.Object) int { return cmp.Compare(x.String(), y.String()) }) {
		labelled := a.objects[key].GetLabels()[v1alpha2.LabelResourceID] != ""
		if owner := ownerOf(a.objects[key]); labelled && owner != nil && owner.UID == m.UID {
			all = append(all, a.objects[key].DeepCopy())
		}
	}
	return all, nil
}

func (a *api) Live(_ context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return a.objects[passage.Object{APIVersion: apiVersion, Kind: name, Namespace: key.Namespace, Name: key.Name}].DeepCopy(), nil
}

func (a *api) Apply(_ context.Context, configuration runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	if !a.alive() {
		return errKilled
	}
	object := &unstructured.Unstructured{}
	decode(a.t, encode(a.t, configuration), object)
	if a.refuses != nil {
		if err := a.refuses(objects.Identity(object)); err != nil {
			return err
		}
	}
	a.checkApply(objects.Identity(object), object)
	a.wrote(objects.Identity(object), object)
	return nil
}

func (a *api) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	if !a.alive() {
		return errKilled
	}
	var asked client.DeleteOptions
	asked.ApplyOptions(options)
	key := objects.Identity(object.(*unstructured.Unstructured))
	live := a.objects[key]
	if live == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.String())
	}
	if asked.Preconditions == nil || *asked.Preconditions.UID != live.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{}, key.String(), errors.New("it is another one"))
	}
	a.checkDelete(key)
	a.removed(key, *asked.PropagationPolicy == metav1.DeletePropagationForeground)
	return nil
}

func (a *api) Status() client.SubResourceWriter { return statusOfAPI{on: a} }

type statusOfAPI struct {
	client.SubResourceWriter
	on *api
}

func (s statusOfAPI) Apply(_ context.Context, configuration runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	a := s.on
	if !a.alive() {
		return errKilled
	}
	var applied v1alpha2.Materialize
	decode(a.t, encode(a.t, configuration), &applied)
	materializes := schema.GroupResource{Resource: "materializes"}
	switch {
	case a.m == nil:
		return apierrors.NewNotFound(materializes, applied.Name)
	case a.m.ResourceVersion != applied.ResourceVersion:
		return apierrors.NewConflict(materializes, applied.Name, fmt.Errorf("it is at %s", a.m.ResourceVersion))
	}
	a.checkStatus(a.m.Status, applied.Status)
	a.tellStatus(a.m.Status, applied.Status)
	a.m.Status, a.m.ResourceVersion = applied.Status, a.nextVersion()
	a.changed()
	return nil
}

func (c *cluster) tellStatus(before, now v1alpha2.MaterializeStatus) {
	if len(now.Conditions) == 0 {
		c.tell("status   it has a name")
		return
	}
	c.tell("status   %s: %s", now.Conditions[0].Reason, shortHashes(now.Conditions[0].Message))
	for _, field := range []struct{ name, before, now string }{
		{"requestedRolloutHash", before.RequestedRolloutHash, now.RequestedRolloutHash},
		{"ignoredForcePromote", before.IgnoredForcePromote, now.IgnoredForcePromote},
		{"lastCompletedRolloutHash", before.LastCompletedRolloutHash, now.LastCompletedRolloutHash},
		{"activeGeneration", fmt.Sprint(before.ActiveGeneration), fmt.Sprint(now.ActiveGeneration)},
	} {
		if field.before != field.now {
			c.tell("         %s: %s", field.name, shortHashes(field.now))
		}
	}
}

func encode(t testing.TB, object any) []byte {
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func decode(t testing.TB, body []byte, into any) {
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("decode %s: %v", body, err)
	}
}

package adoption

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

const hubID = "hub"

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a hub and its members in memory. Its controllers observe it, decide with the planners of the operator, and write to it.
type world struct {
	t         *testing.T
	now       time.Time
	policies  map[model.PolicyKey]*policy.Policy
	templates map[model.TemplateKey]*unstructured.Unstructured
	bindings  map[client.ObjectKey]*model.Binding
	works     map[client.ObjectKey]*workv1alpha1.Work
	originals map[client.ObjectKey]*unstructured.Unstructured
	members   map[string]*cluster
	ready     map[model.PolicyKey]string
	// deletedNamespaces are those of the hub that are being deleted.
	deletedNamespaces map[string]bool
	log               strings.Builder
	uid               int
	// writes are counted; the operator is killed after the one in killedAfter.
	writes, killedAfter int
	// byPeople holds while people write, which does not count.
	byPeople bool
	// requeueAfter is the shortest time after which a controller asked to look again.
	requeueAfter time.Duration
}

// cluster is a member: its Cluster on the hub, nil once it has left, and the objects that it runs.
type cluster struct {
	*clusterv1alpha1.Cluster
	objects map[model.TemplateKey]*unstructured.Unstructured
	// removed are objects that the operator saw removed, as they were last. An operator that starts anew knows of none.
	removed map[model.TemplateKey]*unstructured.Unstructured
}

// killed is what the operator panics with when it is killed.
type killed struct{}

func newWorld(t *testing.T, members ...string) *world {
	w := &world{
		t: t, now: epoch, policies: map[model.PolicyKey]*policy.Policy{}, templates: map[model.TemplateKey]*unstructured.Unstructured{},
		bindings: map[client.ObjectKey]*model.Binding{}, works: map[client.ObjectKey]*workv1alpha1.Work{},
		originals: map[client.ObjectKey]*unstructured.Unstructured{}, members: map[string]*cluster{}, ready: map[model.PolicyKey]string{},
		deletedNamespaces: map[string]bool{},
	}
	for _, name := range members {
		w.members[name] = &cluster{
			Cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, objects: map[model.TemplateKey]*unstructured.Unstructured{},
			removed: map[model.TemplateKey]*unstructured.Unstructured{},
		}
		w.setReady(name, metav1.ConditionTrue, "")
	}
	return w
}

func (w *world) setReady(member string, is metav1.ConditionStatus, message string) {
	meta.SetStatusCondition(&w.members[member].Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ConditionReady, Status: is, Reason: "Test", Message: message})
}

// policy adds one that takes all Deployments of namespace shop.
func (w *world) policy(name string, resolution policyv1alpha1.ConflictResolution) *policy.Policy {
	p := &policy.Policy{Namespace: "shop", Name: name, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}, ConflictResolution: resolution,
	}}
	w.policies[p.Key()] = p
	return p
}

// template adds one to the hub, or changes it.
func (w *world) template(name, text string) {
	object := w.named(name, text)
	if have := w.templates[model.KeyOf(object)]; have != nil {
		object.SetUID(have.GetUID())
	}
	w.templates[model.KeyOf(object)] = object
}

// runs adds an object to a member that its users have created.
func (w *world) runs(member, name, text string) {
	object := w.named(name, text)
	w.members[member].objects[model.KeyOf(object)] = w.accept(nil, object, "kubectl")
}

func (w *world) named(name, text string) *unstructured.Unstructured {
	object := adoptiontest.Object(w.t, text)
	object.SetName(name)
	object.SetUID(w.newUID())
	return object
}

func (w *world) newUID() types.UID {
	w.uid++
	return types.UID(fmt.Sprint("uid-", w.uid))
}

// edit changes an object of a member as its users do.
func (w *world) edit(member, kindAndName string, change func(*unstructured.Unstructured)) {
	for key, live := range w.members[member].objects {
		if key.Kind.Kind+" "+key.Name == kindAndName {
			edited := live.DeepCopy()
			change(edited)
			w.members[member].objects[key] = w.accept(live, edited, "kubectl")
			return
		}
	}
	w.t.Fatalf("cluster %s has no %s", member, kindAndName)
}

// remove deletes an object of a member as its users do.
func (w *world) remove(member, kindAndName string) {
	maps.DeleteFunc(w.members[member].objects, func(key model.TemplateKey, live *unstructured.Unstructured) bool {
		if key.Kind.Kind+" "+key.Name != kindAndName {
			return false
		}
		w.members[member].removed[key] = live
		return true
	})
}

// accept is an object as the API server of a member stores it: with defaults, and with who has set which labels.
func (w *world) accept(before, object *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	stored := object.DeepCopy()
	if before == nil {
		stored.SetUID(w.newUID())
	} else if stored.GetManagedFields() == nil {
		stored.SetManagedFields(before.GetManagedFields())
	}
	if stored.GetKind() == "Deployment" {
		if _, found, _ := unstructured.NestedInt64(stored.Object, "spec", "progressDeadlineSeconds"); !found {
			_ = unstructured.SetNestedField(stored.Object, int64(600), "spec", "progressDeadlineSeconds")
		}
	}
	fields := map[string]any{}
	for key, value := range stored.GetLabels() {
		if before == nil || before.GetLabels()[key] != value || before.GetManagedFields() == nil {
			fields["f:"+key] = map[string]any{}
		}
	}
	if len(fields) > 0 {
		text, err := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:labels": fields}})
		if err != nil {
			w.t.Fatal(err)
		}
		stored.SetManagedFields(append(stored.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(string(text))}))
	}
	return stored
}

// write is a write of the operator.
func (w *world) write() {
	if w.byPeople {
		return
	}
	w.writes++
	if w.writes == w.killedAfter+1 && w.killedAfter > 0 {
		panic(killed{})
	}
}

func (w *world) tell(format string, args ...any) { fmt.Fprintf(&w.log, format+"\n", args...) }

// do is something that people do. The operator then reconciles until nothing changes.
func (w *world) do(what string, change func()) {
	w.tell("* %s", what)
	w.byPeople = true
	change()
	w.byPeople = false
	w.settle()
}

// whileDown is something that happens while the operator is down.
func (w *world) whileDown(what string, change func()) {
	w.tell("* while the operator is down: %s", what)
	w.byPeople = true
	change()
	w.byPeople = false
	w.restart()
}

// restart makes the operator forget what only its memory has.
func (w *world) restart() {
	for _, m := range w.members {
		clear(m.removed)
	}
}

// maxRounds is more than any story takes.
const maxRounds = 50

// settle lets all controllers look at everything, round after round, until nothing changes any more.
func (w *world) settle() {
	for round := 1; round < maxRounds; round++ {
		before := w.log.Len()
		w.requeueAfter = 0
		done, writes := w.reconcile()
		switch {
		case !done || writes || w.log.Len() > before:
		case w.requeueAfter > 0:
			w.now = w.now.Add(w.requeueAfter)
			w.tell("  %s later", w.requeueAfter)
		default:
			return
		}
	}
	w.t.Fatalf("it never ends:\n%s", w.log.String())
}

// reconcile lets every controller look at each of its objects once, unless the operator is killed meanwhile.
func (w *world) reconcile() (done, writes bool) {
	before := w.writes
	defer func() {
		if problem := recover(); problem != nil {
			if _, ok := problem.(killed); !ok {
				panic(problem)
			}
			w.tell("  the operator is killed, and restarted")
			w.restart()
			done, writes = false, true
		}
	}()
	keys := map[model.TemplateKey]bool{}
	for key := range w.templates {
		keys[key] = true
	}
	for _, b := range w.bindings {
		keys[model.TemplateKeyOf(b)] = true
	}
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(a, b model.TemplateKey) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		w.reconcileTemplate(key)
	}
	for _, key := range sortedKeys(w.bindings) {
		w.reconcileBinding(key)
	}
	for _, key := range sortedKeys(w.works) {
		for _, request := range model.BindingRequests(w.t.Context(), w.works[key]) {
			if w.bindings[request.NamespacedName] == nil {
				w.reconcileUnbound(request.NamespacedName)
			}
		}
		w.reconcileWork(key)
	}
	for _, name := range slices.Sorted(maps.Keys(w.members)) {
		w.reconcileCluster(w.members[name])
	}
	for _, p := range w.sortedPolicies() {
		w.reportPolicy(p)
	}
	return true, w.writes != before
}

func sortedKeys[V any](all map[client.ObjectKey]V) []client.ObjectKey {
	return slices.SortedFunc(maps.Keys(all), func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
}

func (w *world) sortedPolicies() []*policy.Policy {
	return slices.SortedFunc(maps.Values(w.policies), func(a, b *policy.Policy) int { return cmp.Compare(a.Name, b.Name) })
}

// writeBinding stores a binding as the API server of the hub does.
func (w *world) writeBinding(have, want *model.Binding) *model.Binding {
	if have != nil && equality.Semantic.DeepEqual(have.Object, want.Object) {
		return have
	}
	w.write()
	stored := want.Copy()
	switch {
	case have == nil:
		stored.SetUID(w.newUID())
		stored.SetGeneration(1)
		stored.SetCreationTimestamp(metav1.NewTime(w.now))
	case !equality.Semantic.DeepEqual(have.Spec, want.Spec):
		stored.SetGeneration(have.GetGeneration() + 1)
	}
	w.bindings[client.ObjectKeyFromObject(stored.Object)] = stored
	return stored
}

func (w *world) writeWork(have, want *workv1alpha1.Work) {
	if have != nil && equality.Semantic.DeepEqual(have, want) {
		return
	}
	w.write()
	stored := want.DeepCopy()
	switch {
	case have == nil:
		stored.UID, stored.Generation = w.newUID(), 1
	case !equality.Semantic.DeepEqual(have.Spec, want.Spec) || have.DeletionTimestamp.IsZero() != want.DeletionTimestamp.IsZero():
		stored.Generation = have.Generation + 1
	}
	w.works[client.ObjectKeyFromObject(stored)] = stored
}

// end is what everything has come to, for a person to read, and the same whenever the operator was killed.
func (w *world) end() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(w.members)) {
		for _, object := range w.members[name].objects {
			manager := map[model.Ownership]string{
				model.Unmanaged: "unmanaged", model.ManagedHere: "managed", model.ManagedByAnotherHub: "managed by another hub",
				model.ManagedByKarmada: "managed by another control plane",
			}[model.IdentityOf(hubID, object).OwnershipOf(object)]
			content := object.DeepCopy().Object
			delete(content, "metadata")
			delete(content, "apiVersion")
			delete(content, "kind")
			text, err := json.Marshal(content)
			if err != nil {
				w.t.Fatal(err)
			}
			labels := model.MergeKeys(object.GetLabels(), model.OwnershipLabels)
			lines = append(lines, fmt.Sprintf("  %s: %s %s, %s, %s %v", name, object.GetKind(), model.NameOf(object), manager, text, labels))
		}
	}
	for _, key := range sortedKeys(w.bindings) {
		lines = append(lines, "  hub: binding "+key.String())
	}
	for _, key := range sortedKeys(w.works) {
		lines = append(lines, "  hub: Work in "+key.Namespace)
	}
	for key := range w.originals {
		lines = append(lines, "  hub: original in "+key.Namespace)
	}
	slices.Sort(lines)
	return strings.ReplaceAll(strings.Join(lines, "\n"), "map[", "[") + "\n"
}

// show puts what everything has come to into the story.
func (w *world) show() { w.tell("  there are now\n%s", strings.TrimSuffix(w.end(), "\n")) }

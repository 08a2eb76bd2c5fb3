package usage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

var names = []string{"default", "prod", "r1", "r2"}

// Whatever happens in whatever order, the tracker knows what somebody would find who looks at everything afresh, and
// tells of each name whose users changed and of no other.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			w := newWorld()
			before := w.everyone()
			for step := range 250 {
				what := w.happens(random)
				after := w.everyone()
				for _, as := range []role{asRevision, asTag} {
					for _, name := range names {
						if diff := cmp.Diff(after[as][name], w.tracker.references(name, as)); diff != "" {
							t.Fatalf("step %d, %s: users of %s:\n%s", step, what, name, diff)
						}
						if diff := cmp.Diff(inShort(after[as][name]), w.tracker.usage(name, as)); diff != "" {
							t.Fatalf("step %d, %s: use of %s:\n%s", step, what, name, diff)
						}
					}
				}
				if diff := cmp.Diff(differences(before, after), w.reported.drain()); diff != "" {
					t.Fatalf("step %d, %s: told of:\n%s", step, what, diff)
				}
				before = after
			}
			w.end()
			if l := w.tracker.index; len(l.users)+len(l.namespaces)+len(l.tags) > 0 {
				t.Errorf("all is gone, and the index still has %d names, %d namespaces and %d tags",
					len(l.users), len(l.namespaces), len(l.tags))
			}
		})
	}
}

// everyone is who uses each name.
type everyone map[role]map[string][]Reference

// differences are "name" for other users, and "name at once" for a name that came into use or out of it.
func differences(before, after everyone) []string {
	reported := map[string]bool{}
	for _, as := range []role{asRevision, asTag} {
		for _, name := range names {
			was, is := before[as][name], after[as][name]
			if slices.EqualFunc(was, is, func(a, b Reference) bool { return a.String() == b.String() }) {
				continue
			}
			reported[name] = reported[name] || (len(was) == 0) != (len(is) == 0)
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		if reported[name] {
			name += " at once"
		}
		lines = append(lines, name)
	}
	return lines
}

// world has a tracker that is told what happens in it, and no other memory of it than the objects.
type world struct {
	tracker  *Tracker
	handlers map[string]toolscache.ResourceEventHandler
	listener *subscription
	reported *recorder
	objects  map[string]map[client.ObjectKey]client.Object
}

func newWorld() *world {
	w := &world{
		tracker:  newTracker(),
		reported: &recorder{},
		objects:  map[string]map[client.ObjectKey]client.Object{kindNamespace: {}, kindPod: {}, v1.IstioRevisionTagKind: {}},
	}
	for _, k := range templateKinds {
		w.objects[k.kind] = map[client.ObjectKey]client.Object{}
	}
	w.handlers = w.tracker.handlers()
	w.listener = &subscription{queue: w.reported, due: map[string]time.Time{}, requests: func(name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}}
	w.tracker.subscriptions[w.listener] = struct{}{}
	return w
}

func (w *world) happens(random *rand.Rand) string {
	for _, name := range names {
		w.listener.due[name] = time.Now().Add(time.Hour) // what is not told at once is told later
	}
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	name := func() string { return one(append(names, "")...) }
	gone := random.IntN(4) == 0
	namespace := one("shop", "bank", "zoo")
	some := func(keys ...string) string {
		var pairs []string
		for _, key := range keys {
			if random.IntN(3) > 0 {
				continue
			}
			value := one("true", "false", "enabled", "disabled")
			if key == v1.LabelRevision {
				value = name()
			}
			pairs = append(pairs, key+"="+value)
		}
		return strings.Join(pairs, ",")
	}
	switch random.IntN(8) {
	case 0:
		return w.set(kindNamespace, makeNamespace(namespace, some(v1.LabelRevision, v1.LabelInjection)), gone, random)
	case 1:
		tag := makeTag(one("prod", "canary"), one(v1.IstioKind, v1.IstioRevisionKind)+"/"+one(names...), name())
		return w.set(v1.IstioRevisionTagKind, tag, gone, random)
	case 2, 3:
		kind := templateKinds[random.IntN(len(templateKinds))].kind
		workload := annotated(makeWorkload(kind, one("a", "b", "c"), some(keptLabels...)), name())
		workload.SetNamespace(namespace)
		return w.set(kind, workload, gone, random)
	default:
		pod := makePod(namespace, one("a", "b", "c", "d", "e", "f"), some(keptLabels...), name())
		phase := corev1.PodPhase(one("Pending", "Running", "Running", "Succeeded", "Failed"))
		return w.set(kindPod, pod, gone || !watched(phase), random)
	}
}

// set hands the tracker what an informer would hand it.
func (w *world) set(kind string, object client.Object, gone bool, random *rand.Rand) string {
	key := client.ObjectKeyFromObject(object)
	old := w.objects[kind][key]
	handler := w.handlers[kind]
	switch {
	case gone && old == nil:
		return "nothing"
	case gone && random.IntN(2) == 0:
		handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key.String(), Obj: old})
		delete(w.objects[kind], key)
	case gone:
		handler.OnDelete(object)
		delete(w.objects[kind], key)
	case old == nil:
		handler.OnAdd(object, false)
		w.objects[kind][key] = object
	default:
		handler.OnUpdate(old, object)
		w.objects[kind][key] = object
	}
	return fmt.Sprintf("%s %s, gone: %t", kind, key, gone)
}

func (w *world) end() {
	for kind, objects := range w.objects {
		for _, object := range objects {
			w.handlers[kind].OnDelete(object)
		}
	}
}

func (w *world) everyone() everyone {
	found := everyone{asRevision: {}, asTag: {}}
	add := func(as role, name string, r Reference) { found[as][name] = append(found[as][name], r) }
	for key, object := range w.objects[kindNamespace] {
		if chosen := policyOf(object.GetLabels()).choice; chosen.name != "" {
			for as := range found {
				add(as, chosen.name, Reference{Kind: kindNamespace, Name: key.Name, By: chosen.String()})
			}
		}
	}
	for key, object := range w.objects[v1.IstioRevisionTagKind] {
		refers := tagOf(object.(*v1.IstioRevisionTag))
		for _, name := range names {
			if refers.fixed == name || refers.current == name {
				add(asRevision, name, Reference{Kind: v1.IstioRevisionTagKind, Name: key.Name, By: refers.by(name)})
			}
		}
	}
	for key, object := range w.objects[kindPod] {
		says := podOf(object.GetLabels(), object.GetAnnotations())
		namespace, ok := w.objects[kindNamespace][client.ObjectKey{Name: key.Namespace}]
		if ok && policyOf(namespace.GetLabels()).decides {
			says.chosen = choice{}
		}
		for as := range found {
			for _, name := range names {
				if by := says.by(name, as); by != "" {
					add(as, name, Reference{Kind: kindPod, Namespace: key.Namespace, Name: key.Name, By: by})
				}
			}
		}
	}
	order := []string{kindNamespace, v1.IstioRevisionTagKind}
	for _, k := range templateKinds {
		order = append(order, k.kind)
		for key, object := range w.objects[k.kind] {
			namespace, ok := w.objects[kindNamespace][client.ObjectKey{Name: key.Namespace}]
			template := podTemplate(object)
			says := templateOf(template.Labels, template.Annotations)
			if ok && policyOf(namespace.GetLabels()).decides {
				says.chosen = choice{}
			}
			for as := range found {
				for _, name := range names {
					if by := says.by(name, as); by != "" {
						add(as, name, Reference{Kind: k.kind, Namespace: key.Namespace, Name: key.Name, By: by + " of the pod template"})
					}
				}
			}
		}
	}
	order = append(order, kindPod)
	for _, byName := range found {
		for _, references := range byName {
			slices.SortFunc(references, func(a, b Reference) int {
				isWorkload := func(r Reference) bool { return r.Namespace != "" && r.Kind != kindPod }
				if isWorkload(a) && isWorkload(b) && a.Namespace != b.Namespace {
					return strings.Compare(a.Namespace, b.Namespace)
				}
				if a.Kind != b.Kind {
					return slices.Index(order, a.Kind) - slices.Index(order, b.Kind)
				}
				return strings.Compare(a.String(), b.String())
			})
		}
	}
	return found
}

func inShort(references []Reference) Usage {
	var u Usage
	for _, r := range references {
		switch r.Kind {
		case kindNamespace:
			u.Namespaces++
		case kindPod:
			u.Pods++
		case v1.IstioRevisionTagKind:
			u.Tags++
		default:
			u.Workloads++
		}
		if len(u.Names) < 5 {
			u.Names = append(u.Names, r.String())
		}
	}
	return u
}

// recorder is a queue that keeps what it is asked for.
type recorder struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	asked []string
}

func (r *recorder) Add(request reconcile.Request) {
	r.asked = append(r.asked, request.Name+" at once")
}

func (r *recorder) AddAfter(request reconcile.Request, _ time.Duration) {
	r.asked = append(r.asked, request.Name)
}

func (r *recorder) drain() []string {
	asked := r.asked
	r.asked = nil
	slices.Sort(asked)
	return asked
}

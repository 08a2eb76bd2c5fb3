package consumers

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

var update = flag.Bool("update", false, "rewrite the stories in testdata")

// story is how consumers are switched, for a person to read and to agree with.
type story struct {
	title string
	setup func(*world)
}

func (w *world) shop() {
	w.deploy("a", 2)
	w.deploy("b", 1)
	w.deploy("c", 1)
	w.deploy("d", 1)
	w.deploy("e", 1)
}

func every(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

func stories() map[string]story {
	twos := Intent{ID: "one", BatchSize: 2, Delay: every(30 * time.Second)}
	back := Intent{ID: "back", BatchSize: 2, Revert: true}
	refuses := func(p *proxy) { p.refuses = true }
	return map[string]story{
		"three-batches": {"Five consumers, two at a time and half a minute apart. Nothing goes wrong.", func(w *world) {
			w.shop()
			w.asks(10, twos)
		}},
		"refusal": {"A proxy of the second batch refuses what it is sent. The one beside it settles, and nothing more starts. When it is mended, a retry goes on.", func(w *world) {
			w.shop()
			w.deploy("c", 1, refuses)
			w.asks(0, twos)
			w.on(120, "the cause is mended, and fairlead retry mesh default", func() {
				w.proxies["c-0"].refuses = false
				w.configure(w.proxies["c-0"])
				w.annotate(fairlead.AnnotationRetry, "again")
			})
		}},
		"failure-outlives-pods": {"The pods of a consumer that failed are replaced, and then gone. It stays failed.", func(w *world) {
			w.deploy("a", 1, refuses)
			w.deploy("b", 1)
			w.asks(0, Intent{ID: "one"})
			w.on(60, "the pod of a is replaced", func() { delete(w.proxies, "a-0"); w.start("a", "a-new") })
			w.on(120, "the pod of a is gone", func() { delete(w.proxies, "a-new") })
			w.on(180, "fairlead retry mesh default", func() { w.annotate(fairlead.AnnotationRetry, "again") })
		}},
		"lost-proxy": {"A proxy loses its stream over what it is sent, and does not come back in time.", func(w *world) {
			w.shop()
			w.deploy("b", 1, func(p *proxy) { p.drops = true })
			w.asks(0, twos)
		}},
		"silent-proxy": {"A proxy never says anything about what it is sent.", func(w *world) {
			w.deploy("a", 1, func(p *proxy) { p.mute = true })
			w.deploy("b", 1)
			w.asks(0, twos)
		}},
		"lost-while-operator-was-down": {"The operator is killed when it has opened a batch, and a proxy of it never comes back.", func(w *world) {
			w.shop()
			w.diesAfter[1] = true
			w.asks(0, twos)
			w.on(3, "b-0 loses its network", func() { w.proxies["b-0"].never = true })
		}},
		"killed-between-batches": {"The operator is killed in the delay between two batches. The next one waits for its proxies, and no longer.", func(w *world) {
			w.shop()
			w.asks(0, Intent{ID: "one", BatchSize: 2, Delay: every(time.Second)})
			w.diesAfter[3] = true
		}},
		"disconnected": {"Proxies of two consumers are not connected: the others are switched, and these wait. One connects, and is switched. For the other one somebody gives up the acknowledgement.", func(w *world) {
			never := func(p *proxy) { p.never = true }
			w.deploy("a", 1, never)
			w.deploy("b", 1)
			w.deploy("c", 2)
			w.start("c", "c-2", never)
			w.deploy("d", 1)
			w.asks(0, Intent{ID: "one", BatchSize: 2})
			w.on(60, "c-2 connects", func() { w.proxies["c-2"].never = false; w.connect(w.proxies["c-2"]) })
			w.asks(120, Intent{ID: "two", BatchSize: 2, AllowDisconnected: true})
		}},
		"disconnected-after-restart": {"The operator is killed when it has switched the first of two, and the proxy of the other never comes back.", func(w *world) {
			w.deploy("a", 1)
			w.deploy("b", 1)
			w.asks(0, Intent{ID: "one"})
			w.diesAfter[1] = true
			w.on(3, "b-0 loses its network", func() { w.proxies["b-0"].never = true })
		}},
		"revert-disconnected": {"To go back waits for nobody.", func(w *world) {
			w.shop()
			w.asks(0, Intent{ID: "one", BatchSize: 5})
			w.on(60, "b-0 loses its network", func() { w.proxies["b-0"].never, w.proxies["b-0"].connection = true, model.Connection{} })
			w.on(70, "fairlead migrate mesh default --revert --batch-size 2", func() { w.ask(back) })
		}},
		"pod-replaced": {"A pod of the open batch is replaced before it has answered. Its successor has to be content instead.", func(w *world) {
			w.deploy("a", 2)
			w.deploy("b", 1)
			w.deploy("z", 1, func(p *proxy) { p.never = true })
			w.asks(0, Intent{ID: "one", BatchSize: 3})
			w.on(2, "a-1 is replaced by a-2, and b is scaled to nothing", func() {
				delete(w.proxies, "a-1")
				w.start("a", "a-2")
				delete(w.proxies, "b-0")
			})
			w.on(90, "b is back", func() { w.start("b", "b-new") })
		}},
		"successor-refuses": {"A pod of the open batch is replaced, and its successor refuses.", func(w *world) {
			w.deploy("a", 1)
			w.asks(0, twos)
			w.on(2, "a-0 is replaced by a-1", func() { delete(w.proxies, "a-0"); w.start("a", "a-1", refuses) })
		}},
		"pause-and-resume": {"Paused while the first batch is underway, and resumed two minutes later.", func(w *world) {
			w.shop()
			w.asks(0, twos)
			w.on(2, "fairlead pause mesh default", func() { w.annotate(fairlead.AnnotationPaused, "true") })
			w.on(122, "fairlead resume mesh default", func() { w.annotate(fairlead.AnnotationPaused, "") })
		}},
		"revert": {"All go over, and all come back.", func(w *world) {
			w.shop()
			w.asks(0, Intent{ID: "one", BatchSize: 5})
			w.on(60, "fairlead migrate mesh default --revert --batch-size 2", func() { w.ask(back) })
		}},
		"revert-halfway": {"It is reverted while a batch is underway; only what was switched goes back.", func(w *world) {
			w.shop()
			w.asks(0, twos)
			w.on(35, "fairlead migrate mesh default --revert --batch-size 2", func() { w.ask(back) })
		}},
		"revert-when-disabled": {"The mesh is Disabled first, which takes MeshServices from everybody; the record is then cleared at once.", func(w *world) {
			w.shop()
			w.asks(0, Intent{ID: "one", BatchSize: 5})
			w.on(60, "spec.meshServices: Disabled", func() { setMode(w.mesh, kumav1alpha1.ModeDisabled) })
			w.on(90, "fairlead migrate mesh default --revert", func() { w.ask(back) })
		}},
		"revert-after-refusal": {"A proxy refuses, and it is taken back.", func(w *world) {
			w.deploy("a", 1)
			w.deploy("b", 1, refuses)
			w.deploy("c", 1)
			w.asks(0, Intent{ID: "one"})
			w.on(60, "fairlead migrate mesh default --revert --batch-size 2", func() { w.ask(back) })
		}},
		"replaced-intent": {"Another intent takes the place of the first: what is switched stays so, and what is underway is seen through.", func(w *world) {
			w.shop()
			w.asks(0, twos)
			w.asks(35, Intent{ID: "two", BatchSize: 3})
		}},
		"asked-twice": {"Somebody repeats the command while the next batch waits. It does not come sooner for that.", func(w *world) {
			w.shop()
			w.asks(0, twos)
			w.asks(15, Intent{ID: "two", BatchSize: twos.BatchSize, Delay: twos.Delay})
		}},
		"named-consumers": {"Only some are named, one of which does not exist; they go back by name, too.", func(w *world) {
			w.shop()
			w.asks(0, Intent{ID: "one", BatchSize: 2, Consumers: []string{"shop/Deployment/a", "shop/Deployment/b", "shop/Deployment/typo"}})
			w.on(60, "fairlead migrate mesh default --consumers shop/Deployment/a --revert", func() {
				w.ask(Intent{ID: "two", Revert: true, Consumers: []string{"shop/Deployment/a"}})
			})
		}},
		"absent-consumer": {"The only one that is named is scaled to zero: nobody is switched, and that is said until it runs.", func(w *world) {
			w.deploy("a", 1)
			w.asks(0, Intent{ID: "one", BatchSize: 2, Consumers: []string{"shop/Deployment/late"}})
			w.on(30, "late is deployed", func() { w.deploy("late", 1) })
		}},
		"invalid-name": {"A value of kuma.io/service is not valid as the name of a MeshService. That keeps nobody from those that are generated.", func(w *world) {
			w.deploy("a", 1)
			setGenerated(w.mesh, metav1.ConditionFalse, kumav1alpha1.ReasonInvalidName, "1 value of kuma.io/service not valid as a MeshService name: pay_api")
			w.asks(0, twos)
		}},
		"late-consumer": {"A consumer that is deployed after all was done joins as a further batch. In Exclusive nobody has to.", func(w *world) {
			w.deploy("a", 1)
			w.asks(0, twos)
			w.on(60, "late is deployed", func() { w.deploy("late", 1) })
			w.on(90, "spec.meshServices: Exclusive", func() { setMode(w.mesh, kumav1alpha1.ModeExclusive) })
			w.on(120, "later is deployed", func() { w.deploy("later", 1) })
		}},
		"held": {"What is asked for cannot begin: one reason after the other is mended.", func(w *world) {
			w.deploy("a", 1)
			setMode(w.mesh, kumav1alpha1.ModeDisabled)
			w.serving = false
			w.on(0, "an annotation that nobody can read", func() { w.annotate(kumav1alpha1.AnnotationMigrate, `{"batchSize": 2}`) })
			w.asks(10, twos)
			w.on(20, "the operator serves", func() { w.serving = true })
			w.on(30, "spec.meshServices: Everywhere", func() { setMode(w.mesh, kumav1alpha1.ModeEverywhere) })
			w.on(40, "spec.meshServices: ReachableBackendRefs, not yet in force", func() {
				setMode(w.mesh, kumav1alpha1.ModeReachableBackendRefs)
				w.mesh.Generation = 2
			})
			w.on(50, "it is in force, and nothing is said of MeshServices", func() {
				setMode(w.mesh, kumav1alpha1.ModeReachableBackendRefs)
				w.mesh.Status.Conditions = nil
			})
			w.on(60, "one MeshService of three is generated", func() {
				setGenerated(w.mesh, metav1.ConditionFalse, kumav1alpha1.ReasonGenerating, "2 MeshServices not generated yet: shop/a, shop/b")
			})
			w.on(70, "there is nothing to generate", func() {
				setMode(w.mesh, kumav1alpha1.ModeReachableBackendRefs)
				w.mesh.Status.MeshServices.Total = 0
			})
			w.on(80, "all are generated", func() { setMode(w.mesh, kumav1alpha1.ModeReachableBackendRefs) })
		}},
		"mesh-replaced": {"The Mesh is deleted and created again, without the annotation, while a batch is underway. Whoever is switched stays so, the batch is seen through, and it goes on when somebody asks again.", func(w *world) {
			w.shop()
			w.asks(0, twos)
			w.on(35, "kubectl replace --force -f mesh.yaml", func() { w.replace(map[string]string{}) })
			w.asks(120, Intent{ID: "two", BatchSize: 2})
		}},
		"mesh-replaced-with-annotations": {"The Mesh is deleted and created again with its annotations: it goes on where it was. A consumer that failed is not tried again, and a retry that was followed is none.", func(w *world) {
			w.shop()
			w.deploy("c", 1, refuses)
			w.asks(0, twos)
			w.on(50, "fairlead retry mesh default", func() { w.annotate(fairlead.AnnotationRetry, "again") })
			w.on(120, "kubectl get mesh default -o yaml | kubectl replace --force -f -", func() { w.replace(maps.Clone(w.mesh.Annotations)) })
		}},
		"mesh-replaced-when-reverting": {"The Mesh is deleted and created again with its annotations while consumers go back.", func(w *world) {
			w.shop()
			w.asks(0, Intent{ID: "one", BatchSize: 5})
			w.on(60, "fairlead migrate mesh default --revert --batch-size 2", func() { w.ask(back) })
			w.on(62, "kubectl get mesh default -o yaml | kubectl replace --force -f -", func() { w.replace(maps.Clone(w.mesh.Annotations)) })
		}},
		"withdrawn": {"The annotation is removed halfway: what is switched stays so, and nothing more starts.", func(w *world) {
			w.shop()
			w.asks(0, twos)
			w.on(20, "the annotation is removed", func() { w.annotate(kumav1alpha1.AnnotationMigrate, "") })
		}},
	}
}

func TestStory(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.log.WriteString(s.title + "\n\n")
			s.setup(w)
			w.run()
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(w.log.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; make it with -update", err)
			}
			if diff := cmp.Diff(string(want), w.log.String()); diff != "" {
				t.Errorf("another story (-want +got):\n%s", diff)
			}
		})
	}
}

// end is a record without what times and crashes make of it.
func end(w *world) map[string]string {
	ends := map[string]string{}
	if record := w.record().Status.Migration; record != nil {
		ends[""] = record.Intent + " " + record.Phase
		for _, c := range record.Consumers {
			ends[c.Name] = string(c.State)
		}
	}
	return ends
}

func TestKilledAfterEveryWrite(t *testing.T) {
	for name, s := range stories() {
		if slices.Contains([]string{"lost-while-operator-was-down", "killed-between-batches", "disconnected-after-restart"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			undisturbed := newWorld(t)
			s.setup(undisturbed)
			undisturbed.run()
			for k := 1; k <= undisturbed.writes; k++ {
				w := newWorld(t)
				s.setup(w)
				w.diesAfterWrite[k] = true
				w.run()
				if diff := cmp.Diff(end(undisturbed), end(w)); diff != "" {
					t.Errorf("killed after write %d it ends elsewhere (-undisturbed +killed):\n%s\n%s", k, diff, w.log.String())
				}
			}
		})
	}
}

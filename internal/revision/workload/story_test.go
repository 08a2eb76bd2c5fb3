package workload

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

var update = flag.Bool("update", false, "rewrite the stories in testdata")

// story is a whole migration: what the controller writes, what it tells, and what the cluster makes of it, for a person to
// read and to agree with.
type story struct {
	title string
	setup func(*cluster)
	// dies are the writes after which the operator is killed; it comes back after downtime.
	dies     []int
	downtime time.Duration
}

// settings are how the Istio of a cluster moves its workloads.
func (c *cluster) settings(size int32, delay string) *v1.BatchedMigrationConfig {
	config := c.istio.Spec.UpdateStrategy.WorkloadMigration.Batched
	config.BatchSize, config.DelayBetweenBatches = &size, ptr.To(v1.Duration(delay))
	return config
}

// shop is a namespace on the old revision, with workloads in it.
func (c *cluster) shop(names string) {
	c.namespace("shop", rev(old))
	for name := range strings.FieldsSeq(names) {
		c.deploy("shop/" + name)
	}
}

// on is something that people do, so many seconds after the beginning.
func (c *cluster) on(second int, reported string, do func()) {
	c.later(at(second).Sub(c.now), reported, do)
}

func (c *cluster) upgradeOn(second int, version string) {
	c.on(second, "spec.version: "+version, func() { c.upgrade(version) })
}

func annotate(key, value string) func(*v1.Istio) {
	return func(i *v1.Istio) { i.Annotations = map[string]string{key: value} }
}

func TestStory(t *testing.T) {
	stories := map[string]story{
		"plain": {
			title: "Seven workloads in two namespaces, three at a time and half a minute apart. Nothing goes wrong.",
			setup: func(c *cluster) {
				c.settings(3, "30s")
				c.shop("a b c d")
				c.namespace("web", rev(old))
				c.deploy("web/e", takes(25))
				c.deploy("web/f")
				c.deploy("web/g")
				c.upgradeOn(10, "v1.26.0")
			},
		},
		"mixed-labels-and-tags": {
			title: "Namespaces and pods that choose their revision in every way there is. Tags stay on labels, and what is not for us to move is not touched.",
			setup: func(c *cluster) {
				c.settings(10, "10s")
				c.tags = []v1.IstioRevisionTag{*makeTag("prod", "Istio/default", old), *makeTag("default", "Istio/default", old), *makeTag("stable", "IstioRevision/"+old, old)}
				c.namespace("by-default", "istio-injection=enabled")
				c.namespace("by-label", rev(old))
				c.namespace("by-pod", "")
				c.namespace("by-tag", rev("prod"))
				c.namespace("foreign", rev(foreign24))
				c.namespace("off", "istio-injection=disabled")
				c.namespace("pinned", rev("stable"))
				c.deploy("by-default/a")
				c.deploy("by-label/a")
				c.deploy("by-label/own", labels(rev(old)))
				c.deploy("by-label/paused", spec(func(d *appsv1.Deployment) { d.Spec.Paused = true }), untouchable)
				c.deploy("by-label/skipped", notes(v1.AnnotationSkipMigration, "true"), untouchable)
				c.deploy("by-label/zero", spec(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) }), untouchable)
				c.deploy("by-pod/a", labels(rev(old)))
				c.deploy("by-pod/none", untouchable)
				c.deploy("by-pod/tagged", labels(rev("prod")))
				c.deploy("by-pod/zero", labels(rev(old)), spec(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) }))
				c.deploy("by-tag/a")
				c.deploy("foreign/a", untouchable)
				c.deploy("off/a", untouchable)
				c.deploy("pinned/a", untouchable)
				c.unmanagedWorkload("StatefulSet", "by-label/db", old)
				c.unmanagedWorkload("DaemonSet", "pinned/agent", old)
				c.upgradeOn(10, "v1.26.0")
			},
		},
		"one-failure": {
			title: "One of the second batch never becomes ready. The others go on, and it is not forgotten.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.shop("a b d e")
				c.deploy("shop/c", brokenOn(target))
				c.upgradeOn(0, "v1.26.0")
			},
		},
		"given-up-by-kubernetes": {
			title: "One never becomes ready, and its Deployment says so itself before its time is up.",
			setup: func(c *cluster) {
				c.settings(2, "10s").ReadinessTimeout = ptr.To[v1.Duration]("1h")
				c.shop("a c")
				c.deploy("shop/b", brokenOn(target), deadline(2*time.Minute))
				c.upgradeOn(0, "v1.26.0")
			},
		},
		"fail-fast": {
			title: "One of the first batch fails and the policy is to fail fast: the one beside it is waited for, and nothing more starts.",
			setup: func(c *cluster) {
				settings := c.settings(2, "10s")
				settings.FailurePolicy, settings.ReadinessTimeout = v1.FailurePolicyFailFast, ptr.To[v1.Duration]("30s")
				c.shop("c d")
				c.deploy("shop/a", brokenOn(target))
				c.deploy("shop/b", takes(20), notes(v1.AnnotationReadinessTimeout, "5m"))
				c.upgradeOn(0, "v1.26.0")
			},
		},
		"pause-and-resume": {
			title: "Paused while the first batch is underway, and resumed two minutes later.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.shop("a b c d")
				c.upgradeOn(0, "v1.26.0")
				c.on(15, "fairlead pause istio default", func() { c.change(annotate(fairlead.AnnotationPaused, "true")) })
				c.on(135, "fairlead resume istio default", func() { c.change(annotate(fairlead.AnnotationPaused, "false")) })
			},
		},
		"new-target-midway": {
			title: "Another version is asked for while the first batch is underway. It is not waited for: its workloads are the first batch on the way to the newer one.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.shop("a b c d")
				c.upgradeOn(0, "v1.26.0")
				c.upgradeOn(15, "v1.27.0")
			},
		},
		"workload-deleted-midway": {
			title: "Workloads go and come meanwhile: one that is underway and one that waits are deleted, and one appears.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.shop("a b c d e")
				c.upgradeOn(0, "v1.26.0")
				c.on(10, "shop/b, which is underway, and shop/d are deleted", func() { c.apps["shop/b"].remove(); c.apps["shop/d"].remove() })
				c.on(20, "late/f appears, in a namespace labelled with the old revision", func() { c.namespace("late", rev(old)); c.deploy("late/f") })
			},
		},
		"istio-deleted-midway": {
			title: "The Istio is deleted: nothing more starts. What was started goes on by itself.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.shop("a b c d")
				c.upgradeOn(0, "v1.26.0")
				c.on(15, "kubectl delete istio default", func() {
					c.change(func(i *v1.Istio) { i.DeletionTimestamp = ptr.To(metav1.NewTime(c.now)) })
				})
				c.on(120, "it is gone", func() { c.istio = nil; c.sailChanged() })
			},
		},
		"max-version-refusal": {
			title: "The new version is above the bound, until that is raised.",
			setup: func(c *cluster) {
				c.settings(2, "10s").MaxVersion = ptr.To("1.24.999")
				c.shop("a b c")
				c.upgradeOn(0, "v1.26.0")
				c.on(60, "batched.maxVersion: 1.26.999", func() {
					c.change(func(i *v1.Istio) { i.Spec.UpdateStrategy.WorkloadMigration.Batched.MaxVersion = ptr.To("1.26.999") })
				})
			},
		},
		"max-version-lowered-midway": {
			title: "The bound is lowered below the target while the first batch is underway: that one settles, and nothing more starts.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.shop("a b c")
				c.upgradeOn(0, "v1.26.0")
				c.on(15, "batched.maxVersion: 1.24.999", func() {
					c.change(func(i *v1.Istio) { i.Spec.UpdateStrategy.WorkloadMigration.Batched.MaxVersion = ptr.To("1.24.999") })
				})
			},
		},
		"going-back": {
			title: "After half of the workloads, the old version is asked for again. The label of the namespace goes back at once, then what is underway, then the rest in batches.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.namespace("own", "")
				c.deploy("own/a", labels(rev(old)))
				c.deploy("own/b", labels(rev(old)))
				c.shop("c d")
				c.upgradeOn(0, "v1.26.0")
				c.upgradeOn(50, "v1.24.0")
			},
		},
		"rolled-back": {
			title: "The new revision is ready, and its injector refuses every pod. The old version is asked for again: the label of the namespace goes back at once, and so does what is underway. What has no pod on the new revision is not restarted for it.",
			setup: func(c *cluster) { rollback(c, 60) },
		},
		"target-changed-twice": {
			title: "The target changes while a batch is underway, and again while that is on its way to the next one. All of it goes first each time, beyond the batch size of two.",
			setup: func(c *cluster) {
				settings := c.settings(3, "10s")
				c.shop("a b c d")
				c.upgradeOn(0, "v1.26.0")
				c.on(10, "batched.batchSize: 2", func() { c.change(func(*v1.Istio) { settings.BatchSize = ptr.To[int32](2) }) })
				c.upgradeOn(12, "v1.27.0")
				c.upgradeOn(25, "v1.24.0")
			},
		},
		"injector-fails": {
			title: "The new revision is ready, but its injector is not. No label moves and nothing restarts until pods would get their sidecars, by label and by tag.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.tags = []v1.IstioRevisionTag{*makeTag("prod", "Istio/default", old)}
				c.shop("a b")
				c.namespace("tagged", rev("prod"))
				c.deploy("tagged/c")
				c.injectorFails[target] = apierrors.NewInternalError(errors.New(`failed calling webhook "rev.object.sidecar-injector.istio.io": connection refused`))
				c.upgradeOn(0, "v1.26.0")
				c.on(60, "the injector of "+target+" answers", func() { delete(c.injectorFails, target) })
			},
		},
		"injector-fails-midway": {
			title: "The injector of the new revision fails after the first batch. No other batch opens, and going back is possible, because the injector of the old revision is checked, too.",
			setup: func(c *cluster) {
				c.settings(2, "6m")
				c.shop("a b c d")
				c.upgradeOn(0, "v1.26.0")
				c.on(60, "the injector of "+target+" fails", func() { c.injectorFails[target] = apierrors.NewInternalError(errors.New("failed calling webhook")) })
				c.upgradeOn(450, "v1.24.0")
			},
		},
		"no-injector-to-go-back-to": {
			title: "Going back, when the injectors of both revisions fail: nothing would be better for it, so nothing moves, and the status says why.",
			setup: func(c *cluster) {
				c.settings(2, "0s")
				c.shop("a b")
				c.upgradeOn(0, "v1.26.0")
				c.on(60, "all injectors fail", func() {
					for _, revision := range []string{old, target} {
						c.injectorFails[revision] = apierrors.NewInternalError(errors.New("failed calling webhook"))
					}
				})
				c.upgradeOn(70, "v1.24.0")
				c.on(200, "the injector of "+old+" answers", func() { delete(c.injectorFails, old) })
			},
		},
		"switched-off-midway": {
			title: "The strategy is switched off while a batch is underway, of which one fails. It is seen through, and not forgotten when the strategy is switched on again.",
			setup: func(c *cluster) {
				c.settings(2, "10s").ReadinessTimeout = ptr.To[v1.Duration]("1m")
				c.shop("b c d")
				c.deploy("shop/a", brokenOn(target))
				c.upgradeOn(0, "v1.26.0")
				strategy := func(s v1.WorkloadMigrationStrategy) func() {
					return func() { c.change(func(i *v1.Istio) { i.Spec.UpdateStrategy.WorkloadMigration.Strategy = s }) }
				}
				c.on(15, `workloadMigration.strategy: ""`, strategy(""))
				c.on(120, "workloadMigration.strategy: Batched", strategy(v1.WorkloadMigrationStrategyBatched))
			},
		},
		"retry": {
			title: "One fails, the rest completes. Its owner repairs it, and has it tried again.",
			setup: func(c *cluster) {
				c.settings(2, "10s").ReadinessTimeout = ptr.To[v1.Duration]("1m")
				c.shop("b c")
				c.deploy("shop/a", brokenOn(target))
				c.upgradeOn(0, "v1.26.0")
				c.on(200, "what shop/a lacks is there now", func() { c.apps["shop/a"].brokenOn = "" })
				c.on(210, "fairlead retry istio default", func() {
					c.change(annotate(fairlead.AnnotationRetry, c.now.Format(time.RFC3339Nano)))
				})
			},
		},
		"priorities": {
			title: "Lower numbers of sailoperator.io/migration-batch go first, and no batch mixes two.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.shop("a b c")
				c.deploy("shop/canary", notes(v1.AnnotationMigrationBatch, "-1"))
				c.deploy("shop/last", notes(v1.AnnotationMigrationBatch, "10"))
				c.upgradeOn(0, "v1.26.0")
			},
		},
		"all-kinds": {
			title: "Deployments, StatefulSets and DaemonSets move in the same batches. One StatefulSet fails. When all go back, it stands still until its owner deletes the pod that is not ready. What only its owner can replace is listed.",
			setup: func(c *cluster) {
				settings := c.settings(2, "10s")
				settings.ReadinessTimeout, settings.WorkloadKinds = ptr.To[v1.Duration]("1m"), allKinds
				c.namespace("shop", rev(old))
				c.deploy("shop/agent", ofKind(kindDaemonSet))
				c.deploy("shop/cart")
				c.deploy("shop/db", ofKind(kindStatefulSet))
				c.deploy("shop/manual", ofKind(kindDaemonSet), onDelete, untouchable)
				c.deploy("shop/queue", ofKind(kindStatefulSet), brokenOn(target))
				c.upgradeOn(0, "v1.26.0")
				c.upgradeOn(200, "v1.24.0")
				c.on(230, "the pod of shop/queue that is not ready is deleted", c.apps["shop/queue"].evict)
			},
		},
		"other-kinds-by-default": {
			title: "Without workloadKinds only Deployments move. A StatefulSet and a DaemonSet are listed, and not touched.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.shop("cart")
				c.deploy("shop/agent", ofKind(kindDaemonSet), untouchable)
				c.deploy("shop/db", ofKind(kindStatefulSet), untouchable)
				c.upgradeOn(0, "v1.26.0")
			},
		},
		"own-timeout": {
			title: "The annotation sailoperator.io/readiness-timeout gives one workload more time than others, and another one less. Those that get there after their time are not told to have failed any more.",
			setup: func(c *cluster) {
				c.settings(3, "10s").ReadinessTimeout = ptr.To[v1.Duration]("1m")
				c.namespace("shop", rev(old))
				c.deploy("shop/hasty", takes(40), notes(v1.AnnotationReadinessTimeout, "20s"))
				c.deploy("shop/slow", takes(40), notes(v1.AnnotationReadinessTimeout, "10m"))
				c.deploy("shop/usual", takes(45))
				c.upgradeOn(0, "v1.26.0")
			},
		},
		"refused": {
			title: "An admission policy lets one workload not be changed. Every quarter of an hour it is looked whether it would be now.",
			setup: func(c *cluster) {
				c.settings(2, "10s")
				c.shop("a b c")
				strict := true
				c.refuses = func(object client.Object) error {
					if strict && object.GetName() == "b" {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "b", fmt.Errorf("frozen until Monday"))
					}
					return nil
				}
				c.upgradeOn(0, "v1.26.0")
				c.on(120, "it is Monday", func() { strict = false })
			},
		},
		"rolled-out-by-others": {
			title: "Owners go on with their own rollouts: of a workload that has moved already, which never gets ready this time, and of one that has yet to move, which is on the new revision thereby.",
			setup: func(c *cluster) {
				c.settings(1, "2m")
				c.shop("a b c")
				c.upgradeOn(0, "v1.26.0")
				c.on(160, "a new image of shop/a, and it is broken", func() {
					a := c.apps["shop/a"]
					a.brokenOn = target
					a.edit(func(d *appsv1.Deployment) { d.Spec.Template.Annotations["image"] = "v2" })
				})
				c.on(170, "a new image of shop/c", func() {
					c.apps["shop/c"].edit(func(d *appsv1.Deployment) { d.Spec.Template.Annotations["image"] = "v2" })
				})
			},
		},
		"no-progress-deadline": {
			title: "Deployments that do not say when they were ready. The delay between batches holds for them, too.",
			setup: func(c *cluster) {
				c.settings(1, "1m")
				c.namespace("shop", rev(old))
				c.deploy("shop/a", deadline(0))
				c.deploy("shop/b", deadline(0))
				c.upgradeOn(0, "v1.26.0")
			},
		},
		"operator-killed": {
			title:    "The operator is killed after its fifth and its eleventh write, in the middle of starting batches. They are filled up when it comes back, and nothing starts twice.",
			dies:     []int{5, 11},
			downtime: 20 * time.Second,
			setup: func(c *cluster) {
				c.settings(3, "10s")
				c.shop("a b c d e f g")
				c.upgradeOn(0, "v1.26.0")
			},
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { golden(t, name+".golden", story.play(t)) })
	}
	if *update || t.Failed() {
		return
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, found := stories[strings.TrimSuffix(filepath.Base(file), ".golden")]; !found {
			t.Errorf("%s belongs to no story", file)
		}
	}
}

func takes(seconds int) func(*app) {
	return func(a *app) { a.takes = time.Duration(seconds) * time.Second }
}

func brokenOn(revision string) func(*app) { return func(a *app) { a.brokenOn = revision } }

func deadline(d time.Duration) func(*app) { return func(a *app) { a.deadline = d } }

func untouchable(a *app) { a.untouchable = true }

func labels(text string) func(*app) {
	return spec(func(d *appsv1.Deployment) { d.Spec.Template.Labels = labelled(text) })
}

func notes(key, value string) func(*app) {
	return spec(func(d *appsv1.Deployment) { d.Annotations[key] = value })
}

func spec(change func(*appsv1.Deployment)) func(*app) { return func(a *app) { change(a.Deployment) } }

func (s story) play(t *testing.T) string {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n\n", s.title)
	c := newCluster(t)
	clock := ""
	c.tell = func(format string, args ...any) {
		since := c.now.Sub(epoch)
		now := fmt.Sprintf("%d:%02d", int(since.Minutes()), int(since.Seconds())%60)
		if now == clock {
			now = ""
		} else {
			clock = now
		}
		fmt.Fprintf(&text, "%6s  %s\n", now, fmt.Sprintf(format, args...))
	}
	s.setup(c)
	dies := s.dies
	c.run(func() bool {
		if len(dies) > 0 && c.writes == dies[0] {
			dies = dies[1:]
			return false
		}
		return true
	}, s.downtime)
	fmt.Fprintf(&text, "\nIn the end, after %d writes, of which %d of the status:\n", c.writes, c.statuses)
	for _, a := range c.sorted() {
		times := 0
		for what, n := range c.restarts {
			if strings.HasPrefix(what, a.key()+" ") {
				times += n
			}
		}
		fmt.Fprintf(&text, "%18s  %s\n", a.key(), strings.TrimSpace(fmt.Sprintf("%-36s %s", a.runsOn(), moves(times))))
	}
	return text.String()
}

func moves(times int) string {
	switch times {
	case 0:
		return ""
	case 1:
		return "moved"
	}
	return fmt.Sprintf("moved %d times", times)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s tells another story (-want +got); if the new one is right, go test ./internal/revision/workload -run Story -update\n%s", file, diff)
	}
}

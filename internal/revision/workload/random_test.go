package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// TestRandomWorlds lets everything happen at once: people meddle, the operator is killed between any two writes, events
// come late. A seed that fails tells its story, and can be run alone: go test ./internal/revision/workload -run 'RandomWorlds/seed-17$'
func TestRandomWorlds(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			var story strings.Builder
			defer func() {
				if t.Failed() {
					t.Log("\n" + story.String())
				}
			}()
			c := newCluster(t)
			c.tell = func(format string, args ...any) {
				fmt.Fprintf(&story, "%8s  %s\n", c.now.Sub(epoch), fmt.Sprintf(format, args...))
			}
			dice{rand.New(rand.NewPCG(uint64(seed), 0))}.play(c)
		})
	}
}

type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func (d dice) seconds(from, to int) time.Duration {
	return time.Duration(from+d.IntN(to-from+1)) * time.Second
}

func (d dice) pick(names ...string) string { return names[d.IntN(len(names))] }

func (d dice) play(c *cluster) {
	settings := c.settings(int32(1+d.IntN(4)), d.seconds(0, 30).String())
	settings.ReadinessTimeout = ptr.To(v1.Duration(d.seconds(30, 180).String()))
	settings.WorkloadKinds = allKinds
	if d.chance(20) {
		settings.FailurePolicy = v1.FailurePolicyFailFast
	}
	c.tags = []v1.IstioRevisionTag{
		*makeTag("prod", "Istio/default", old), *makeTag("default", "Istio/default", old),
		*makeTag("stable", "IstioRevision/"+old, old), *makeTag("theirs", "Istio/other", foreign24),
	}
	c.revisions = append(c.revisions, makeRevision(oldest, "v1.22.0", "default"))
	for i, labels := range []string{
		rev(old), rev(old), rev(oldest), rev("prod"), "istio-injection=enabled", "", "",
		"istio-injection=disabled", rev("stable"), rev("theirs"), rev(foreign24), rev("nobody"),
	} {
		c.namespace(fmt.Sprintf("n%d", i), labels)
	}
	for range d.IntN(15) {
		d.deploy(c)
	}

	alive := true
	promises(c)
	c.asks(old)
	c.asks(target)
	c.upgradeOn(d.IntN(10), "v1.26.0")
	end := 0
	for range d.IntN(12) {
		end += d.IntN(60)
		c.on(end, "", func() { d.meddle(c) })
	}
	c.on(end+1, "people leave it alone", func() {
		alive = false
		c.refuses = nil
		clear(c.injectorFails)
		c.change(func(i *v1.Istio) {
			i.Annotations = nil
			i.Spec.UpdateStrategy.WorkloadMigration.Strategy = v1.WorkloadMigrationStrategyBatched
			i.Spec.UpdateStrategy.WorkloadMigration.Batched.MaxVersion = nil
		})
		c.retry()
	})
	mayWrite := func() bool { return !alive || !d.chance(4) }
	c.lag = func(events int) int {
		if alive {
			return d.IntN(events + 1)
		}
		return events
	}
	c.run(mayWrite, d.seconds(0, 90))
	d.judge(c, settings.FailurePolicy == v1.FailurePolicyFailFast)
}

func (d dice) deploy(c *cluster) {
	in := fmt.Sprintf("n%d", d.IntN(len(c.namespaces)-1))
	name := fmt.Sprintf("%s/w%02d", in, c.version)
	c.deploy(name, func(a *app) {
		a.takes, a.Annotations["owner"] = d.seconds(1, 40), "them"
		a.Spec.Replicas = ptr.To(int32(d.IntN(4)))
		if d.chance(30) {
			labels(rev(d.pick(old, oldest, "prod", "stable", "theirs")))(a)
		}
		if d.chance(10) {
			notes(v1.AnnotationSkipMigration, "true")(a)
		}
		if d.chance(20) {
			notes(v1.AnnotationMigrationBatch, fmt.Sprint(d.IntN(3)-1))(a)
		}
		if d.chance(10) {
			notes(v1.AnnotationReadinessTimeout, d.seconds(10, 300).String())(a)
		}
		a.Spec.Paused = d.chance(5)
		if d.chance(10) {
			a.brokenOn = target
		}
		if d.chance(10) {
			a.deadline = 0
		}
		if d.chance(30) {
			ofKind(d.pick(kindStatefulSet, kindDaemonSet))(a)
			a.Spec.Paused = false
		}
	})
	c.tell("* %s appears", name)
}

// meddle is what people do.
func (d dice) meddle(c *cluster) {
	apps := c.sorted()
	migration := c.istio.Spec.UpdateStrategy.WorkloadMigration
	reported := func(format string, args ...any) { c.tell("* "+format, args...) }
	switch action := d.IntN(15); {
	case action == 0:
		reported("pause")
		c.change(annotate(fairlead.AnnotationPaused, "true"))
	case action == 1:
		reported("resume")
		c.change(func(i *v1.Istio) { delete(i.Annotations, fairlead.AnnotationPaused) })
	case action == 2:
		version := d.pick("v1.24.0", "v1.26.0", "v1.27.0")
		reported("version %s", version)
		c.asks("default-" + strings.ReplaceAll(version, ".", "-"))
		c.upgrade(version)
	case action == 3:
		reported("retry")
		c.retry()
	case action == 4:
		reported("off or on")
		c.change(func(*v1.Istio) {
			if migration.Strategy == "" {
				migration.Strategy = v1.WorkloadMigrationStrategyBatched
			} else {
				migration.Strategy = ""
			}
		})
	case action == 5:
		reported("batches of another size")
		c.change(func(*v1.Istio) { migration.Batched.BatchSize = ptr.To(int32(1 + d.IntN(4))) })
	case action == 6:
		reported("a bound, or none")
		c.change(func(*v1.Istio) {
			migration.Batched.MaxVersion = nil
			if d.chance(50) {
				migration.Batched.MaxVersion = ptr.To("1.26.0")
			}
		})
	case action == 7:
		reported("a policy, or none")
		frozen := d.IntN(10)
		c.refuses = func(object client.Object) error {
			if !strings.HasSuffix(object.GetName(), fmt.Sprint(frozen)) {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{}, object.GetName(), fmt.Errorf("frozen"))
		}
	case action <= 9:
		d.deploy(c)
	case action == 14:
		reported("injectors fail, or do no longer")
		if revision := d.pick(old, target); c.injectorFails[revision] == nil {
			c.injectorFails[revision] = apierrors.NewInternalError(errors.New("failed calling webhook"))
		} else {
			delete(c.injectorFails, revision)
		}
	case len(apps) == 0:
	case action == 10:
		gone := apps[d.IntN(len(apps))]
		reported("%s is deleted", gone.key())
		gone.remove()
	default:
		a := apps[d.IntN(len(apps))]
		a.edit(func(deployment *appsv1.Deployment) {
			switch d.IntN(4) {
			case 0:
				reported("%s is scaled", a.key())
				deployment.Spec.Replicas = ptr.To(int32(d.IntN(4)))
			case 1:
				reported("%s is rolled out", a.key())
				deployment.Spec.Template.Annotations = map[string]string{"image": fmt.Sprint(d.Int())}
			case 2:
				reported("%s is to be skipped", a.key())
				deployment.Annotations[v1.AnnotationSkipMigration] = "true"
			default:
				reported("%s gets another priority", a.key())
				deployment.Annotations[v1.AnnotationMigrationBatch] = fmt.Sprint(d.IntN(3))
			}
		})
	}
}

package rollout

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

var update = flag.Bool("update", false, "rewrite the stories in testdata")

// story is a whole rollout: what the controller writes, what it tells, and what the cluster makes of it, for a person to
// read and to agree with.
type story struct {
	title string
	setup func(*cluster)
	// dies are the writes after which the operator is killed; it comes back after downtime.
	dies     func(*cluster) bool
	downtime time.Duration
}

// roll asks for another image, so many seconds after the beginning.
func (c *cluster) roll(second int, tag string) {
	c.on(second, "environmentdImageRef: materialize/environmentd:"+tag, func() { c.edit(func(b maker) { b.image(tag) }) })
}

func TestStory(t *testing.T) {
	strategy := func(c *cluster, s v1alpha2.RolloutStrategy) { c.m = maker{c.m}.strategy(s).Materialize }
	stories := map[string]story{
		"first-deploy": {
			title: "A resource is created. Its first generation is made, takes over, and only then is there anything in front of it.",
			setup: func(*cluster) {},
		},
		"plain": {
			title: "Another image is asked for. The old generation serves until the new one leads.",
			setup: func(c *cluster) { c.roll(100, "v2") },
		},
		"manually-promote": {
			title: "A rollout waits for a person. The hash of another rollout means nothing.",
			setup: func(c *cluster) {
				c.on(100, "rolloutStrategy: ManuallyPromote, and another image", func() {
					c.edit(func(b maker) { b.strategy(v1alpha2.RolloutManuallyPromote).image("v2") })
				})
				c.on(200, "forcePromote: the hash of the rollout before", func() {
					c.edit(func(b maker) { b.forcePromote(b.Status.LastCompletedRolloutHash) })
				})
				c.on(250, "fairlead promote mzs mz -n shop", func() {
					c.edit(func(b maker) { b.forcePromote(b.Status.RequestedRolloutHash) })
				})
			},
		},
		"promoted-before": {
			title: "A person promotes a rollout, thinks better of it while pods start, and later asks for the same again. What was said then is still in the spec, and does not count.",
			setup: func(c *cluster) {
				promote := func(b maker) { b.forcePromote(b.Status.RequestedRolloutHash) }
				c.on(100, "rolloutStrategy: ManuallyPromote, and another image", func() {
					c.edit(func(b maker) { b.strategy(v1alpha2.RolloutManuallyPromote).image("v2") })
				})
				c.on(105, "forcePromote: status.requestedRolloutHash", func() { c.edit(promote) })
				back := func(b maker) { b.strategy(v1alpha2.RolloutWaitUntilReady).image("v1") }
				c.on(107, "back to what serves, with forcePromote as it is", func() { c.edit(back) })
				c.on(200, "rolloutStrategy: ManuallyPromote, and the other image again", func() {
					c.edit(func(b maker) { b.strategy(v1alpha2.RolloutManuallyPromote).image("v2") })
				})
				c.on(300, "forcePromote is removed", func() { c.edit(func(b maker) { b.forcePromote("") }) })
				c.on(310, "forcePromote: status.requestedRolloutHash", func() { c.edit(promote) })
			},
		},
		"forced-early": {
			title: "A person promotes a generation that would take minutes to catch up.",
			setup: func(c *cluster) {
				c.roll(100, "v2")
				c.on(90, "environmentd takes ten minutes to catch up from now on", func() { c.catchesUp = 10 * time.Minute })
				c.on(130, "fairlead promote mzs mz -n shop", func() {
					c.edit(func(b maker) { b.forcePromote(b.Status.RequestedRolloutHash) })
				})
			},
		},
		"changed-before-promoting": {
			title: "The spec changes while the next generation catches up. Nothing of that is promoted, and a clean one takes its place.",
			setup: func(c *cluster) { c.roll(100, "v2"); c.roll(120, "v3") },
		},
		"changed-back": {
			title: "The spec is changed back while the next generation catches up.",
			setup: func(c *cluster) { c.roll(100, "v2"); c.roll(120, "v1") },
		},
		"changed-during-promoting": {
			title: "The spec changes while the next generation takes over. That is completed first, and recorded as what it was.",
			setup: func(c *cluster) { c.roll(100, "v2"); c.roll(132, "v3") },
		},
		"timeout": {
			title: "The next generation never catches up. After ten minutes it is given up. Other edits do not start them anew; another image does.",
			setup: func(c *cluster) {
				c.m = maker{c.m}.timeout("10m").Materialize
				c.on(90, "environmentd never catches up from now on", func() { c.catchesUp = 0 })
				c.roll(100, "v2")
				c.on(400, "balancerdReplicas: 3", func() { c.edit(func(b maker) { b.Spec.BalancerdReplicas = ptr.To[int32](3) }) })
				c.on(800, "environmentd catches up again", func() { c.catchesUp = 20 * time.Second })
				c.roll(810, "v3")
			},
		},
		"timeout-paused": {
			title: "The next generation never catches up, and is given up after a minute. That it is paused then, and resumed, changes nothing about that: it is told, and counted, once.",
			setup: func(c *cluster) {
				c.m = maker{c.m}.timeout("1m").Materialize
				c.on(90, "environmentd never catches up from now on", func() { c.catchesUp = 0 })
				c.roll(100, "v2")
				c.on(200, "fairlead pause mzs mz -n shop", func() { c.edit(func(b maker) { b.annotate(fairlead.AnnotationPaused, "true") }) })
				c.on(300, "fairlead resume mzs mz -n shop", func() { c.edit(func(b maker) { delete(b.Annotations, fairlead.AnnotationPaused) }) })
			},
		},
		"timeout-after-a-restart": {
			title:    "Pods of the next generation do not start, and the operator is killed. The next one comes when the minute is over, and knows from the last one's word what was waited for.",
			downtime: 2 * time.Minute,
			dies: func(c *cluster) bool {
				return c.set("mz"+testID+"-environmentd-2") != nil && strings.HasSuffix(c.m.Status.Conditions[0].Message, "0 of 1 ready")
			},
			setup: func(c *cluster) {
				c.m = maker{c.m}.timeout("1m").Materialize
				c.on(90, "pods do not start from now on", func() { c.starts = 0 })
				c.roll(100, "v2")
				c.on(120, "balancerdReplicas: 3", func() { c.edit(func(b maker) { b.Spec.BalancerdReplicas = ptr.To[int32](3) }) })
			},
		},
		"trouble-on-the-side": {
			title: "The API server fails whenever balancerd is to be changed. That is told, and tried again and again, and the rollout goes on.",
			setup: func(c *cluster) {
				attempts := 0
				c.on(90, "Deployments cannot be written from now on", func() {
					c.refuses = func(key passage.Object) error {
						if key.Kind != "Deployment" {
							return nil
						}
						attempts++
						return apierrors.NewInternalError(fmt.Errorf("read tcp 10.0.0.1:%d: connection reset by peer", 40000+attempts))
					}
				})
				c.on(100, "rolloutStrategy: ManuallyPromote, another image, and balancerdReplicas: 3", func() {
					c.edit(func(b maker) {
						b.strategy(v1alpha2.RolloutManuallyPromote).image("v2").Spec.BalancerdReplicas = ptr.To[int32](3)
					})
				})
				c.on(200, "fairlead promote mzs mz -n shop", func() {
					c.edit(func(b maker) { b.forcePromote(b.Status.RequestedRolloutHash) })
				})
				c.on(300, "Deployments can be written again", func() { c.refuses = nil })
			},
		},
		"passing-trouble": {
			title: "The API server fails once, in the middle of nothing. Nobody hears of it.",
			setup: func(c *cluster) {
				c.on(90, "the next Deployment that is written cannot be", func() {
					c.refuses = func(key passage.Object) error {
						if key.Kind != "Deployment" {
							return nil
						}
						c.refuses = nil
						return apierrors.NewInternalError(errors.New("connection reset by peer"))
					}
				})
				c.on(100, "balancerdReplicas: 3", func() { c.edit(func(b maker) { b.Spec.BalancerdReplicas = ptr.To[int32](3) }) })
			},
		},
		"no-tag": {
			title: "An image is asked for by its digest alone, which says nothing of balancerd and the console. Nothing is made until it has a tag.",
			setup: func(c *cluster) {
				c.on(100, "environmentdImageRef: materialize/environmentd@sha256:0123", func() {
					c.edit(func(b maker) { b.Spec.EnvironmentdImageRef = "materialize/environmentd@sha256:0123" })
				})
				c.on(120, "kubectl delete StatefulSet environmentd-1", func() { c.lose("StatefulSet environmentd-1") })
				c.on(150, "environmentdImageRef: materialize/environmentd:v2@sha256:0123", func() {
					c.edit(func(b maker) { b.Spec.EnvironmentdImageRef = "materialize/environmentd:v2@sha256:0123" })
				})
			},
		},
		"service-account": {
			title: "A ServiceAccount of others is asked for. Nothing is made with it, and nothing is granted to it, until it allows that.",
			setup: func(c *cluster) {
				account := newUnstructured(objects.KindServiceAccount)
				account.SetNamespace("shop")
				account.SetName("builder")
				c.objects[objects.Identity(account)] = account
				c.on(100, "serviceAccountName: builder", func() { c.edit(func(b maker) { b.Spec.ServiceAccountName = "builder" }) })
				c.on(120, "kubectl delete StatefulSet environmentd-1", func() { c.lose("StatefulSet environmentd-1") })
				c.on(200, "kubectl annotate serviceaccount builder fairlead.dev/allow-materialize=true", func() {
					account.SetAnnotations(map[string]string{v1alpha2.AnnotationAllowMaterialize: "true"})
				})
			},
		},
		"immediate": {
			title: "The strategy is to cause downtime: the old generation is gone before the new one starts, and nobody waits until that has caught up.",
			setup: func(c *cluster) {
				strategy(c, v1alpha2.RolloutImmediatelyPromoteCausingDowntime)
				c.roll(100, "v2")
			},
		},
		"immediate-changed-back": {
			title: "The strategy is to cause downtime, and the new generation does not start. Its owner changes the image back, and the old one comes back as it was.",
			setup: func(c *cluster) {
				strategy(c, v1alpha2.RolloutImmediatelyPromoteCausingDowntime)
				c.on(90, "pods do not start from now on", func() { c.starts = 0 })
				c.roll(100, "v2")
				c.on(200, "pods start again", func() { c.starts = 10 * time.Second })
				c.roll(210, "v1")
			},
		},
		"immediate-asked-for-again": {
			title: "The strategy is to cause downtime, and pods do not start. Its owner changes the image back and, before the old generation has come back, asks for the new one again. That has all of the two minutes that it is given.",
			setup: func(c *cluster) {
				strategy(c, v1alpha2.RolloutImmediatelyPromoteCausingDowntime)
				c.m = maker{c.m}.timeout("2m").Materialize
				c.on(90, "pods do not start from now on", func() { c.starts = 0 })
				c.roll(100, "v2")
				c.roll(150, "v1")
				c.on(230, "pods start again", func() { c.starts = 10 * time.Second })
				c.roll(231, "v2")
			},
		},
		"killed-before-the-post": {
			title:    "The operator is killed when it has written that it will promote, and has not done it. In the meantime the spec changes.",
			downtime: time.Minute,
			dies:     func(c *cluster) bool { return c.promoting() && c.m.Status.ActiveGeneration == 1 },
			setup:    func(c *cluster) { c.roll(100, "v2"); c.roll(150, "v3") },
		},
		"killed-after-the-post": {
			title:    "The operator is killed right after it has told the next generation to take over. It does so by itself.",
			downtime: time.Minute,
			dies: func(c *cluster) bool {
				set := c.set("mz" + testID + "-environmentd-2")
				return set != nil && c.daemons[set.GetUID()] != nil && c.daemons[set.GetUID()].status == v1alpha2.LeaderPromoting
			},
			setup: func(c *cluster) { c.roll(100, "v2") },
		},
		"forgetful": {
			title: "The next generation restarts while it takes over, and knows nothing of it. It is asked again.",
			setup: func(c *cluster) {
				c.roll(100, "v2")
				c.on(132, "environmentd restarts", func() {
					d := c.daemons[c.set("mz"+testID+"-environmentd-2").GetUID()]
					d.status = v1alpha2.LeaderInitializing
					c.coming = nil
					c.later(10*time.Second, "", func() { d.status = v1alpha2.LeaderReadyToPromote })
				})
			},
		},
		"lost-while-promoting": {
			title: "All of the next generation is lost while it takes over, and the spec has changed meanwhile. It is made again, of the spec as it is now, and recorded as what it is. What serves is kept up.",
			setup: func(c *cluster) {
				c.roll(100, "v2")
				c.on(131, "environmentdImageRef: materialize/environmentd:v3, and all of generation 2 is lost", func() {
					for _, what := range []string{"StatefulSet environmentd-2", "ConfigMap environmentd-2", "Service environmentd-2", "Service persist-pubsub-2"} {
						c.lose(what)
					}
					c.edit(func(b maker) { b.image("v3") })
				})
				c.on(135, "kubectl delete StatefulSet environmentd-1", func() { c.lose("StatefulSet environmentd-1") })
			},
		},
		"paused": {
			title: "A change is made while it is paused.",
			setup: func(c *cluster) {
				c.on(90, "fairlead pause mzs mz -n shop", func() { c.edit(func(b maker) { b.annotate(fairlead.AnnotationPaused, "true") }) })
				c.roll(100, "v2")
				c.on(200, "fairlead resume mzs mz -n shop", func() { c.edit(func(b maker) { delete(b.Annotations, fairlead.AnnotationPaused) }) })
			},
		},
		"settings-without-a-rollout": {
			title: "What is in front changes without a rollout. What somebody deletes comes back in place.",
			setup: func(c *cluster) {
				c.on(100, "balancerdReplicas: 5", func() { c.edit(func(b maker) { b.Spec.BalancerdReplicas = ptr.To[int32](5) }) })
				for i, name := range []string{"StatefulSet environmentd-1", "ConfigMap environmentd-1", "Service persist-pubsub-1", "Role environmentd", "Deployment console"} {
					c.on(200+20*i, "kubectl delete "+name, func() { c.lose(name) })
				}
			},
		},
		"stripped": {
			title: "Somebody takes labels and owners away. What Fairlead has made it knows all the same, and puts right, and no pod restarts.",
			setup: func(c *cluster) {
				c.on(100, "StatefulSet environmentd-1 loses its labels and its owner", func() { c.strip("StatefulSet environmentd-1") })
				c.roll(150, "v2")
				c.on(155, "StatefulSet environmentd-2 loses its labels and its owner", func() { c.strip("StatefulSet environmentd-2") })
			},
		},
		"made-by-others": {
			title: "Somebody else has made what serves, before Fairlead came. It is left as it is, and what is in front of it is Fairlead's from now on. The next rollout replaces it.",
			setup: func(c *cluster) {
				c.m = maker{c.m}.serving(c.t, 1, makeMaterialize()).Materialize
				c.others(1, v1alpha2.LeaderIsLeader)
				c.roll(100, "v2")
			},
		},
		"made-by-others-service-account": {
			title: "Somebody else has made what serves, with its permissions. The next rollout asks for another ServiceAccount: that of what serves keeps its permissions until the new generation leads.",
			setup: func(c *cluster) {
				account := newUnstructured(objects.KindServiceAccount)
				account.SetNamespace("shop")
				account.SetName("builder")
				account.SetAnnotations(map[string]string{v1alpha2.AnnotationAllowMaterialize: "true"})
				c.objects[objects.Identity(account)] = account
				c.m = maker{c.m}.serving(c.t, 1, makeMaterialize()).Materialize
				c.others(1, v1alpha2.LeaderIsLeader)
				c.sharedOfOthers()
				c.on(100, "serviceAccountName: builder, and another image", func() {
					c.edit(func(b maker) { b.image("v2").Spec.ServiceAccountName = "builder" })
				})
			},
		},
		"made-by-others-immediate": {
			title: "Somebody else has made what serves, and the strategy is to cause downtime. The next generation does not start in time, and theirs comes back as it was.",
			setup: func(c *cluster) {
				served := func() maker {
					return makeMaterialize().strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime).timeout("1m")
				}
				c.m = maker{c.m}.spec(served()).serving(c.t, 1, served()).Materialize
				c.others(1, v1alpha2.LeaderIsLeader)
				c.on(90, "pods do not start from now on", func() { c.starts = 0 })
				c.roll(100, "v2")
				c.on(150, "pods start again", func() { c.starts = 10 * time.Second })
			},
		},
		"made-by-others-underway": {
			title: "Somebody else was about to roll out when Fairlead came. What they have made for that is replaced.",
			setup: func(c *cluster) {
				m := maker{c.m}.image("v2").serving(c.t, 1, makeMaterialize())
				m.Status.LastCompletedRolloutHash, m.Status.RolloutRequestedAt = "", nil
				c.m = m.requested(c.t, m, 0).reported(v1alpha2.ReasonApplying).Materialize
				c.m.Status.RolloutRequestedAt = nil
				c.others(1, v1alpha2.LeaderIsLeader)
				c.others(2, v1alpha2.LeaderReadyToPromote)
			},
		},
		"made-by-others-promoting": {
			title: "Somebody else was promoting when Fairlead came. That is completed, and then the spec is rolled out once more, for nobody knows what it was that they promoted.",
			setup: func(c *cluster) {
				m := maker{c.m}.image("v2").serving(c.t, 1, makeMaterialize()).reported(v1alpha2.ReasonPromoting)
				m.Status.LastCompletedRolloutHash, m.Status.RequestedRolloutHash, m.Status.RolloutRequestedAt = "", "", nil
				c.m = m.Materialize
				c.others(1, v1alpha2.LeaderIsLeader)
				c.others(2, v1alpha2.LeaderReadyToPromote)
			},
		},
		"forced-by-annotation": {
			title: "The annotation rolls out what is there already.",
			setup: func(c *cluster) {
				c.on(100, "materialize.cloud/force-rollout: again", func() {
					c.edit(func(b maker) { b.annotate(v1alpha2.AnnotationForceRollout, "again") })
				})
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

// others is a generation that somebody else has made.
func (c *cluster) others(generation int64, status v1alpha2.LeaderStatus) {
	set := objects.EnvironmentdStatefulSet(c.m, generation)
	set.Spec.Selector.MatchLabels = map[string]string{v1alpha2.LabelGeneration: fmt.Sprint(generation), "by": "others"}
	made := []*unstructured.Unstructured{objects.ToUnstructured(objects.KindStatefulSet, set)}
	for _, service := range []*corev1.Service{objects.GenerationService(c.m, generation), objects.PubSubService(c.m, generation)} {
		made = append(made, objects.ToUnstructured(objects.KindService, service))
	}
	listeners := newUnstructured(objects.KindConfigMap)
	listeners.SetName(objects.NamesOf(c.m).Generation(generation))
	for _, object := range append(made, listeners) {
		object.SetNamespace("shop")
		object.SetUID(types.UID(fmt.Sprint("of-others-", object.GetKind(), object.GetName())))
		object.SetLabels(nil)
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "materialize.cloud/v1alpha1", Kind: v1alpha2.MaterializeKind, Name: c.m.Name, UID: c.m.UID}})
		c.objects[objects.Identity(object)] = object
	}
	c.daemons[made[0].GetUID()] = &daemon{status: status}
}

// sharedOfOthers are the permissions that another operator has made for the active generation.
func (c *cluster) sharedOfOthers() {
	shared, err := objects.Shared(c.m, objects.ActiveConfig{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, object := range shared {
		object.SetNamespace("shop")
		object.SetUID(types.UID(fmt.Sprint("of-others-", object.GetKind(), object.GetName())))
		object.SetLabels(nil)
		object.SetAnnotations(nil)
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "materialize.cloud/v1alpha1", Kind: v1alpha2.MaterializeKind, Name: c.m.Name, UID: c.m.UID}})
		c.objects[objects.Identity(object)] = object
	}
}

// strip takes the label and the owner from an object.
func (c *cluster) strip(what string) {
	for key, object := range c.objects {
		if key.Kind+" "+name(key) == what {
			object.SetLabels(nil)
			object.SetOwnerReferences(nil)
			c.changed()
			return
		}
	}
	c.t.Errorf("there is no %s", what)
}

// lose deletes an object as people do.
func (c *cluster) lose(what string) {
	for key := range c.objects {
		if key.Kind+" "+name(key) == what {
			delete(c.objects, key)
			c.changed()
			return
		}
	}
	c.t.Errorf("there is no %s", what)
}

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
	killed := false
	c.run(at(100000), func() bool {
		if s.dies != nil && !killed && s.dies(c) {
			killed = true
			return false
		}
		return true
	}, s.downtime)
	fmt.Fprintf(&text, "\nIn the end, after %d writes, there are\n", c.writes)
	var lines []string
	for key := range maps.Keys(c.objects) {
		lines = append(lines, fmt.Sprintf("  %s %s", key.Kind, name(key)))
	}
	slices.Sort(lines)
	fmt.Fprintln(&text, strings.Join(lines, "\n"))
	return text.String()
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
		t.Errorf("%s tells another story (-want +got); if the new one is right, go test ./internal/rollout -run Story -update\n%s", file, diff)
	}
}

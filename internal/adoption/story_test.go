package adoption

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

var update = flag.Bool("update", false, "rewrite the stories in testdata")

// story is an adoption from the policy to the objects in the members, for a person to read and to agree with.
type story struct {
	title string
	play  func(*world)
}

const (
	cartOnHub = "Deployment apps/v1\nmetadata: {labels: {app: cart}}\nspec: {replicas: 2, template: {spec: {containers: [{name: cart, image: cart:v2}]}}}"
	cartOfOld = "Deployment apps/v1\nmetadata: {labels: {team: shop}}\nspec: {replicas: 3, template: {spec: {containers: [{name: cart, image: cart:v1}]}}}"
	payOnHub  = "Deployment apps/v1\nspec: {template: {spec: {containers: [{name: pay, image: pay:v1, envFrom: [{configMapRef: {name: settings}}]}]}}}"
	settings  = "ConfigMap v1\ndata: {currency: EUR}"
	settings0 = "ConfigMap v1\ndata: {currency: DEM}"
)

const (
	abort     = policyv1alpha1.ConflictAbort
	overwrite = policyv1alpha1.ConflictOverwrite
)

func setReplicas(n int64) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, n, "spec", "replicas") }
}

// roomFor is a report of room for some pods.
func roomFor(pods string) *clusterv1alpha1.ResourceSummary {
	return &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}}
}

func (w *world) leave(member string, annotations map[string]string) func() {
	return func() {
		w.members[member].DeletionTimestamp = &metav1.Time{Time: w.now}
		w.members[member].Annotations = annotations
	}
}

func stories() map[string]story {
	takeover := func(w *world) {
		w.runs("west", "cart", cartOfOld)
		w.template("cart", cartOnHub)
		w.do("a policy with conflictResolution: Overwrite", func() { w.policy("adopt", overwrite) })
	}
	return map[string]story{
		"takeover": {"One cluster runs the Deployment already, the other one does not. The first is taken over, its original saved, and the second gets a new one. Drift is reverted, and a change on the hub is written to both.", func(w *world) {
			takeover(w)
			w.do("a user scales the Deployment in west to 9 replicas", func() { w.edit("west", "Deployment cart", setReplicas(9)) })
			w.do("the image of the template changes", func() { w.template("cart", strings.Replace(cartOnHub, "cart:v2", "cart:v3", 1)) })
		}},
		"takeover-without-change": {"The cluster runs exactly what the hub asks for. It gets the labels of the hub and nothing else, and there is no original to save.", func(w *world) {
			w.runs("west", "cart", cartOnHub)
			w.template("cart", cartOnHub)
			w.do("a policy with conflictResolution: Overwrite for cluster west", func() {
				w.policy("adopt", overwrite).Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}
			})
		}},
		"dependencies": {"A Deployment brings its ConfigMap, which is taken over only when the policy of the Deployment says so. Without the Deployment, the ConfigMap stays in the cluster and is unmanaged.", func(w *world) {
			w.runs("west", "settings", settings0)
			w.template("pay", payOnHub)
			w.template("settings", settings)
			w.do("a policy with propagateDeps: true", func() { w.policy("adopt", abort).Spec.PropagateDeps = true })
			w.do("conflictResolution: Overwrite", func() { w.policy("adopt", overwrite).Spec.PropagateDeps = true })
			w.do("the Deployment is deleted on the hub", func() {
				for key := range w.templates {
					if key.Name == "pay" {
						delete(w.templates, key)
					}
				}
			})
		}},
		"conflict-overwritten": {"Both clusters run the Deployment, and the policy says Abort: both are left alone. With Overwrite they are taken over.", func(w *world) {
			w.runs("east", "cart", cartOfOld)
			w.runs("west", "cart", cartOfOld)
			w.template("cart", cartOnHub)
			w.do("a policy with conflictResolution: Abort", func() { w.policy("adopt", abort) })
			w.do("conflictResolution: Overwrite", func() { w.policy("adopt", overwrite) })
		}},
		"conflict-deleted": {"A cluster runs the Deployment, and the policy says Abort. When its user deletes the Deployment in the cluster, the one of the hub is created.", func(w *world) {
			w.runs("west", "cart", cartOfOld)
			w.template("cart", cartOnHub)
			w.do("a policy with conflictResolution: Abort", func() { w.policy("adopt", abort) })
			w.do("kubectl delete deployment cart, in west", func() { w.remove("west", "Deployment cart") })
		}},
		"conflict-of-another-hub": {"Another hub manages the Deployment in the cluster. Overwrite does not take it over.", func(w *world) {
			w.runs("west", "cart", cartOfOld)
			w.edit("west", "Deployment cart", func(u *unstructured.Unstructured) { u.SetLabels(model.IdentityOf("other", u).Labels()) })
			w.template("cart", cartOnHub)
			w.do("a policy with conflictResolution: Overwrite", func() { w.policy("adopt", overwrite) })
		}},
		"conflict-of-karmada": {"A control plane of Karmada manages the Deployment in the cluster. Overwrite does not take it over, until that has released it.", func(w *world) {
			w.runs("west", "cart", cartOfOld)
			w.edit("west", "Deployment cart", func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{model.LabelManaged: "true", "work.karmada.io/permanent-id": "7"})
				u.SetAnnotations(map[string]string{"work.karmada.io/name": "cart-58c", "work.karmada.io/namespace": "karmada-es-west"})
			})
			w.template("cart", cartOnHub)
			w.do("a policy with conflictResolution: Overwrite", func() { w.policy("adopt", overwrite) })
			w.show()
			w.do("Karmada releases the Deployment", func() {
				w.edit("west", "Deployment cart", func(u *unstructured.Unstructured) {
					u.SetLabels(nil)
					u.SetAnnotations(nil)
				})
			})
		}},
		"member-lost-and-back": {"A cluster cannot be reached. Nothing is written to it, and the other one goes on. When it is back, it gets what it has missed.", func(w *world) {
			takeover(w)
			w.do("west cannot be reached", func() { w.setReady("west", metav1.ConditionFalse, "connection refused") })
			w.do("the image of the template changes", func() { w.template("cart", strings.Replace(cartOnHub, "cart:v2", "cart:v3", 1)) })
			w.do("west is back", func() { w.setReady("west", metav1.ConditionTrue, "") })
		}},
		"paused-and-resumed": {"A policy is paused, the template changes, and nothing is written until the policy is resumed.", func(w *world) {
			takeover(w)
			w.do("fairlead pause pp adopt", func() { w.policy("adopt", overwrite).Paused = true })
			w.do("the image of the template changes", func() { w.template("cart", strings.Replace(cartOnHub, "cart:v2", "cart:v3", 1)) })
			w.do("fairlead resume pp adopt", func() { w.policy("adopt", overwrite) })
		}},
		"paused-then-narrowed": {"A policy is paused, and then no longer selects a cluster. The Deployment there stays until the policy is resumed.", func(w *world) {
			takeover(w)
			w.do("fairlead pause pp adopt", func() { w.policy("adopt", overwrite).Paused = true })
			only := func(paused bool) func() {
				return func() {
					p := w.policy("adopt", overwrite)
					p.Paused, p.Spec.Placement.ClusterAffinity = paused, &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
				}
			}
			w.do("placement: clusterNames: [east]", only(true))
			w.do("a user scales the Deployment in west to 9 replicas", func() { w.edit("west", "Deployment cart", setReplicas(9)) })
			w.show()
			w.do("fairlead resume pp adopt", only(false))
		}},
		"paused-then-deleted": {"A policy is paused, and the template is deleted. The objects stay until the policy is resumed.", func(w *world) {
			takeover(w)
			w.do("fairlead pause pp adopt", func() { w.policy("adopt", overwrite).Paused = true })
			w.do("kubectl delete deployment cart, on the hub", func() { clear(w.templates) })
			w.show()
			w.do("fairlead resume pp adopt", func() { w.policy("adopt", overwrite) })
		}},
		"unsupported-field-then-deleted": {"A policy gets a field that is not supported, and preserveResourcesOnDeletion. The template is deleted, and the objects stay. Without the field they are released, as the policy asked for.", func(w *world) {
			takeover(w)
			preserve := func(failover *policyv1alpha1.FailoverBehavior) func() {
				return func() {
					spec := &w.policy("adopt", overwrite).Spec
					preserve := true
					spec.Failover, spec.PreserveResourcesOnDeletion = failover, &preserve
				}
			}
			w.do("spec.failover, and preserveResourcesOnDeletion: true", preserve(&policyv1alpha1.FailoverBehavior{}))
			w.do("kubectl delete deployment cart, on the hub", func() { clear(w.templates) })
			w.show()
			w.do("the policy without spec.failover", preserve(nil))
		}},
		"moved-to-a-conflict": {"The policy goes from one cluster to another, which runs such a Deployment already. The one in the first cluster stays until it is replaced.", func(w *world) {
			only := func(name string) func() {
				return func() {
					w.policy("adopt", abort).Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}
				}
			}
			w.runs("west", "cart", cartOfOld)
			w.template("cart", cartOnHub)
			w.do("a policy with conflictResolution: Abort for cluster east", only("east"))
			w.do("placement: clusterNames: [west]", only("west"))
			w.show()
			w.do("kubectl delete deployment cart, in west", func() { w.remove("west", "Deployment cart") })
		}},
		"unsupported-field": {"A policy gets a field that is not supported. It stops there: neither a change on the hub nor one in a cluster is acted on. Without the field, the policy goes on.", func(w *world) {
			takeover(w)
			w.do("spec.failover, and a placement without west", func() {
				spec := &w.policy("adopt", overwrite).Spec
				spec.Failover, spec.Placement.ClusterAffinity = &policyv1alpha1.FailoverBehavior{}, &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
			})
			w.do("the image of the template changes", func() { w.template("cart", strings.Replace(cartOnHub, "cart:v2", "cart:v3", 1)) })
			w.do("a user scales the Deployment in west to 9 replicas", func() { w.edit("west", "Deployment cart", setReplicas(9)) })
			w.show()
			w.do("the policy without spec.failover, for all clusters", func() { w.policy("adopt", overwrite) })
		}},
		"cluster-affinities": {"The first group of clusters does not fit, because its cluster is tainted. The second one is used, and stays in use when the first one fits again. A taint on the cluster in use moves nothing, and NoExecute is reported.", func(w *world) {
			w.members["east"].Spec.Taints = []corev1.Taint{{Key: "drain", Effect: corev1.TaintEffectNoSchedule}}
			w.template("cart", cartOnHub)
			w.do("a policy with the groups east and west, in this order", func() {
				group := func(cluster string) policyv1alpha1.ClusterAffinityTerm {
					return policyv1alpha1.ClusterAffinityTerm{AffinityName: "in-" + cluster, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}}
				}
				w.policy("adopt", overwrite).Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{group("east"), group("west")}
			})
			w.do("the taint of east is removed, and west is tainted", func() {
				w.members["west"].Spec.Taints, w.members["east"].Spec.Taints = w.members["east"].Spec.Taints, nil
			})
			w.do("the taint of west has the effect NoExecute", func() { w.members["west"].Spec.Taints[0].Effect = corev1.TaintEffectNoExecute })
		}},
		"available-replicas": {"Replicas are divided by the room that clusters report. Those that are placed stay when room comes and goes. Further ones go where there is room, and wait for it if there is none.", func(w *world) {
			room := func(east, west string) func() {
				return func() {
					w.members["east"].Status.ResourceSummary, w.members["west"].Status.ResourceSummary = roomFor(east), roomFor(west)
				}
			}
			scale := func(n string) func() {
				return func() { w.template("cart", strings.Replace(cartOnHub, "replicas: 2", "replicas: "+n, 1)) }
			}
			scale("4")()
			w.do("a policy with dynamicWeight: AvailableReplicas, before clusters have reported", func() {
				w.policy("adopt", overwrite).Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaScheduling{
					ReplicaSchedulingType: policyv1alpha1.ReplicasDivided,
					WeightPreference:      &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.WeightByAvailableReplicas},
				}
			})
			w.do("east has room for 30 pods, and west for 10", room("30", "10"))
			w.do("east has no more room, and west for 100 pods", room("0", "100"))
			w.do("the template has 6 replicas", scale("6"))
			w.do("west has no more room either", room("0", "0"))
			w.do("the template has 7 replicas, and another image", func() {
				w.template("cart", strings.NewReplacer("replicas: 2", "replicas: 7", "cart:v2", "cart:v3").Replace(cartOnHub))
			})
			w.show()
			w.do("east has room for 1 pod", room("1", "0"))
		}},
		"lazy-policy": {"A policy with activationPreference: Lazy changes. Each Deployment follows the earlier policy until its template changes. A new template follows the policy as it is.", func(w *world) {
			lazy := func(clusters ...string) func() {
				return func() {
					spec := &w.policy("adopt", overwrite).Spec
					spec.ActivationPreference, spec.Placement.ClusterAffinity = policyv1alpha1.ActivationLazy, &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
				}
			}
			w.template("cart", cartOnHub)
			w.template("pay", payOnHub)
			w.do("a policy with activationPreference: Lazy for cluster west", lazy("west"))
			w.do("the policy is for cluster east", lazy("east"))
			w.do("fairlead pause pp adopt", func() {
				lazy("east")()
				w.policies[model.PolicyKey{Namespace: "shop", Name: "adopt"}].Paused = true
			})
			w.do("fairlead resume pp adopt", lazy("east"))
			w.show()
			w.do("the image of cart changes", func() { w.template("cart", strings.Replace(cartOnHub, "cart:v2", "cart:v3", 1)) })
			w.do("a template ship is created", func() { w.template("ship", strings.ReplaceAll(cartOnHub, "cart", "ship")) })
			w.show()
			w.do("the policy is no longer Lazy", func() {
				w.policy("adopt", overwrite).Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
			})
		}},
		"restore": {"A takeover is aborted: the Deployment that was there is as it was, and the one that the hub created keeps running without the labels of the hub. Then the policy starts again.", func(w *world) {
			takeover(w)
			w.do("fairlead abort pp adopt", func() { w.policy("adopt", overwrite).Aborted = true })
			w.show()
			w.do("the annotation of the abort is removed", func() { w.policy("adopt", overwrite) })
		}},
		"restore-when-recreated": {"A Deployment is taken over, and then deleted and created again by a user. It is not the one that was taken over, and an abort does not restore that.", func(w *world) {
			takeover(w)
			w.do("the Deployment in west is deleted, and applied again with the labels of the hub", func() {
				labels := map[string]string{}
				w.edit("west", "Deployment cart", func(u *unstructured.Unstructured) { labels = u.GetLabels() })
				w.remove("west", "Deployment cart")
				w.runs("west", "cart", cartOnHub)
				w.edit("west", "Deployment cart", func(u *unstructured.Unstructured) { u.SetLabels(labels) })
			})
			w.do("fairlead abort pp adopt", func() { w.policy("adopt", overwrite).Aborted = true })
		}},
		"unjoin": {"A cluster leaves the hub, and keeps what it runs, without the labels of the hub.", func(w *world) {
			takeover(w)
			w.do("fairlead unjoin west", w.leave("west", nil))
		}},
		"unjoin-and-delete": {"A cluster leaves the hub, and all that the hub manages there is deleted.", func(w *world) {
			takeover(w)
			w.do("fairlead unjoin west --delete-resources", w.leave("west", map[string]string{model.AnnotationDeleteResources: "true"}))
		}},
		"unjoin-when-lost": {"A cluster that cannot be reached is to leave: the hub waits for it, until it is forced. Then the cluster is left as it is.", func(w *world) {
			takeover(w)
			w.do("west cannot be reached", func() { w.setReady("west", metav1.ConditionFalse, "connection refused") })
			w.do("fairlead unjoin west", w.leave("west", nil))
			w.do("fairlead unjoin west --force", func() { w.members["west"].Annotations = map[string]string{model.AnnotationAbandon: "true"} })
		}},
		"binding-and-work-deleted": {"Somebody deletes a Work, and then a binding. Both are created again, and the objects in the clusters are not touched.", func(w *world) {
			takeover(w)
			w.do("kubectl delete work, in karmada-es-west", func() {
				for _, key := range sortedKeys(w.works) {
					if key.Namespace == "karmada-es-west" {
						w.deleteWork(w.works[key])
					}
				}
			})
			w.do("kubectl delete resourcebinding cart-deployment", w.deleteBindings)
		}},
		"policy-deleted": {"The policy is deleted: everything stays in the clusters. With the template, the objects go.", func(w *world) {
			takeover(w)
			w.do("kubectl delete pp adopt", func() { clear(w.policies) })
			w.show()
			w.do("kubectl delete deployment cart, on the hub", func() { clear(w.templates) })
		}},
		"namespace-deleted": {"The namespace is deleted on the hub, and its policy goes first, then the binding, then the template. The objects go from the clusters, as they do with their template alone.", func(w *world) {
			takeover(w)
			var all []deletion
			w.do("kubectl delete namespace shop, on the hub", func() { all = w.deleteNamespace() })
			for _, prefix := range []string{"policy", "binding", "Deployment"} {
				for _, d := range all {
					if strings.HasPrefix(d.what, prefix) {
						w.do("the namespace controller deletes "+d.what, d.do)
					}
				}
			}
		}},
		"narrowed-placement": {"The policy no longer selects a cluster, and the object there is deleted. One with preserveResourcesOnDeletion stays.", func(w *world) {
			takeover(w)
			only := func(preserve bool, names ...string) func() {
				return func() {
					p := w.policy("adopt", overwrite)
					p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: names}
					p.Spec.PreserveResourcesOnDeletion = &preserve
				}
			}
			w.do("placement: clusterNames: [west]", only(false, "west"))
			w.show()
			w.do("placement: clusterNames: [east], and preserveResourcesOnDeletion: true", only(true, "east"))
		}},
	}
}

func allStories() map[string]story {
	all := stories()
	maps.Copy(all, jobStories())
	return all
}

func TestStory(t *testing.T) {
	all := allStories()
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "east", "west")
			w.tell("%s\n", s.title)
			s.play(w)
			golden(t, name+".golden", w.log.String()+"\nIn the end there are\n"+w.end())
		})
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, found := all[strings.TrimSuffix(filepath.Base(file), ".golden")]; !found {
			t.Errorf("%s belongs to no story", file)
		}
	}
}

// Killed after any write, the operator ends in the same place.
func TestKilledAfterEveryWrite(t *testing.T) {
	for name, s := range allStories() {
		t.Run(name, func(t *testing.T) {
			undisturbed := newWorld(t, "east", "west")
			s.play(undisturbed)
			for k := 1; k < undisturbed.writes; k++ {
				w := newWorld(t, "east", "west")
				w.killedAfter = k
				s.play(w)
				if diff := cmp.Diff(undisturbed.end(), w.end()); diff != "" {
					t.Errorf("killed after write %d, it ends elsewhere (-undisturbed +killed):\n%s\n%s", k, diff, w.log.String())
				}
			}
		})
	}
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
		t.Errorf("%s tells another story (-want +got); if the new one is right, go test ./internal/adoption -run Story -update\n%s", file, diff)
	}
}

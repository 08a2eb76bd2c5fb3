package work

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestPlanOfAnObject(t *testing.T) {
	desired := func(resolution string) *unstructured.Unstructured {
		return adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {annotations: {work.karmada.io/conflict-resolution: "+resolution+"}}\nspec: {replicas: 2, image: a}")
	}
	managed := func(text string) *unstructured.Unstructured {
		return managedBy(adoptiontest.Object(t, "Deployment apps/v1\n"+text), "hub")
	}
	const defaulted = "spec: {replicas: 2, image: a, strategy: Rolling}"
	asWritten := newRecord(desired("abort"), managed(defaulted))
	leftToCluster := desired("abort")
	leftToCluster.SetAnnotations(model.MergeKeys(leftToCluster.GetAnnotations(), nil, map[string]string{manifest.AnnotationRetainReplicas: "true"}))
	labelled := func(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
		u.SetLabels(model.MergeKeys(u.GetLabels(), nil, map[string]string{key: value}))
		return u
	}
	claim := func(text string) *unstructured.Unstructured {
		return managedBy(adoptiontest.Object(t, "PersistentVolumeClaim v1\n"+text), "hub")
	}
	webhook := func(config string) *unstructured.Unstructured {
		return adoptiontest.Object(t, "MutatingWebhookConfiguration admissionregistration.k8s.io/v1\nwebhooks: [{name: a, clientConfig: "+config+"}]")
	}
	account := func(pullSecrets string) *unstructured.Unstructured {
		return adoptiontest.Object(t, "ServiceAccount v1\nimagePullSecrets: "+pullSecrets)
	}
	going := managed(defaulted)
	going.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2027-01-01T00:00:00Z"
	for name, c := range map[string]struct {
		manifest, live *unstructured.Unstructured
		before         Record
		scaled         bool
		restores       int
		action         passage.Action
		says           string
	}{
		"not there":                   {manifest: desired("abort"), action: model.ActionCreate},
		"unmanaged, to be left alone": {manifest: desired("abort"), live: adoptiontest.Object(t, "Deployment apps/v1\n"+defaulted), action: model.ActionLeave, says: "Deployment shop/it exists in cluster west already, and is left alone: set conflictResolution of the policy to Overwrite, or annotate the resource with work.karmada.io/conflict-resolution: overwrite"},
		"unmanaged, to be taken over": {manifest: desired("overwrite"), live: adoptiontest.Object(t, "Deployment apps/v1\n"+defaulted), action: model.ActionTakeOver},
		"with a copied label only":    {manifest: desired("abort"), live: adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {labels: {karmada.io/managed: 'true'}}"), action: model.ActionLeave},
		"another hub's":               {manifest: desired("overwrite"), live: managedBy(managed(defaulted), "another"), action: model.ActionLeave, says: "managed by another hub"},
		"Karmada's": {
			manifest: desired("overwrite"), live: adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {annotations: {work.karmada.io/name: it-58c}}\n"+defaulted), action: model.ActionLeave,
			says: "managed by another control plane, by its annotation work.karmada.io/name, and is left alone: release the object from that control plane",
		},
		"with marks of another object":    {manifest: desired("abort"), live: labelled(managed(defaulted), model.LabelWork, "x"), action: model.ActionLeave, says: "exists in cluster"},
		"as it was written":               {manifest: desired("abort"), live: managed(defaulted), before: asWritten, action: model.ActionNone},
		"as it was written, status apart": {manifest: desired("abort"), live: managed(defaulted + "\nstatus: {replicas: 2}"), before: asWritten, action: model.ActionNone},
		"nothing is remembered":           {manifest: desired("abort"), live: managed(defaulted), action: model.ActionUpdate},
		"changed on the hub":              {manifest: adoptiontest.Object(t, "Deployment apps/v1\nspec: {image: b}"), live: managed(defaulted), before: asWritten, action: model.ActionUpdate, says: "changed since the last write"},
		"changed in the cluster":          {manifest: desired("abort"), live: managed("spec: {replicas: 2, image: x, strategy: Rolling}"), before: asWritten, action: model.ActionUpdate, says: "was changed in the cluster"},
		"something added in the cluster":  {manifest: desired("abort"), live: managed("spec: {replicas: 2, image: a, strategy: Rolling, extra: 1}"), before: asWritten, action: model.ActionUpdate},
		"scaled by another client":        {manifest: desired("abort"), live: managed("spec: {replicas: 9, image: a, strategy: Rolling}"), before: asWritten, action: model.ActionUpdate},
		"a negative number is a number too": {
			manifest: adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: -1}"), live: managed("spec: {replicas: 9}"),
			before: newRecord(adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: -1}"), managed("spec: {replicas: -1}")),
			action: model.ActionUpdate,
		},
		"scaled by an autoscaler": {
			manifest: desired("abort"), live: managed("spec: {replicas: 9, image: a, strategy: Rolling}"),
			before: newRecord(desired("abort"), managed(defaulted)), scaled: true, action: model.ActionNone,
		},
		"scaled, and left to the cluster": {
			manifest: leftToCluster, live: managed("spec: {replicas: 9, image: a, strategy: Rolling}"),
			before: newRecord(leftToCluster, managed(defaulted)), action: model.ActionNone,
		},
		"taken over, and no longer to be": {
			manifest: desired("abort"), live: managed(defaulted), before: newRecord(desired("overwrite"), managed(defaulted)), action: model.ActionNone,
		},
		"labelled and annotated by others": {
			manifest: desired("abort"), before: asWritten, action: model.ActionNone,
			live: labelled(managed("metadata: {annotations: {deployment.kubernetes.io/revision: '1'}}\n"+defaulted), "team", "x"),
		},
		"a label changed in the cluster": {
			manifest: labelled(desired("abort"), "app", "a"), live: labelled(managed(defaulted), "app", "b"), action: model.ActionUpdate,
			before: newRecord(labelled(desired("abort"), "app", "a"), labelled(managed(defaulted), "app", "a")), says: "was changed in the cluster",
		},
		"given a volume": {
			manifest: adoptiontest.Object(t, "PersistentVolumeClaim v1\nspec: {}"), live: claim("spec: {volumeName: v}"), action: model.ActionNone,
			before: newRecord(adoptiontest.Object(t, "PersistentVolumeClaim v1\nspec: {}"), claim("spec: {}")),
		},
		"given a CA bundle": {
			manifest: webhook("{}"), live: managedBy(webhook("{caBundle: A}"), "hub"), action: model.ActionNone,
			before: newRecord(webhook("{}"), managedBy(webhook("{}"), "hub")),
		},
		"given another CA bundle than the template's": {
			manifest: webhook("{caBundle: B}"), live: managedBy(webhook("{caBundle: A}"), "hub"), action: model.ActionUpdate,
			before: newRecord(webhook("{caBundle: B}"), managedBy(webhook("{caBundle: B}"), "hub")), says: "was changed in the cluster",
		},
		"given a pull secret": {
			manifest: account("[{name: a}]"), live: managedBy(account("[{name: a}, {name: b}]"), "hub"), action: model.ActionNone,
			before: newRecord(account("[{name: a}]"), managedBy(account("[{name: a}]"), "hub")),
		},
		"given a pull secret, and the template has none": {
			manifest: adoptiontest.Object(t, "ServiceAccount v1"), live: managedBy(account("[{name: b}]"), "hub"), action: model.ActionNone,
			before: newRecord(adoptiontest.Object(t, "ServiceAccount v1"), managedBy(adoptiontest.Object(t, "ServiceAccount v1"), "hub")),
		},
		"deprived of a pull secret": {
			manifest: account("[{name: a}]"), live: managedBy(account("[{name: b}]"), "hub"), action: model.ActionUpdate,
			before: newRecord(account("[{name: a}]"), managedBy(account("[{name: a}, {name: b}]"), "hub")), says: "was changed in the cluster",
		},
		"changed too often lately": {
			manifest: desired("abort"), live: managed("spec: {replicas: 2, image: x, strategy: Rolling}"), before: asWritten,
			restores: maxRestores, action: model.ActionLeave, says: "keeps changing the object",
		},
		"changed less often": {
			manifest: desired("abort"), live: managed("spec: {replicas: 2, image: x, strategy: Rolling}"), before: asWritten,
			restores: maxRestores - 1, action: model.ActionUpdate,
		},
		"being deleted": {manifest: desired("overwrite"), live: going, action: model.ActionWait},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{
				Hub: "hub", Cluster: readyCluster(), Connected: true,
				Work: &workv1alpha1.Work{
					ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "it"},
					Status:     workv1alpha1.WorkStatus{ManifestStatuses: []workv1alpha1.ManifestStatus{{WrittenManifest: c.before.Manifest, WrittenObject: c.before.Object}}},
				},
			}
			if hold := Hold(o); hold != nil {
				t.Fatalf("held: %v", hold)
			}
			step := Decide(o, Object{Manifest: c.manifest, Live: c.live, Autoscaled: c.scaled, Restores: c.restores})
			desired := step.Desired
			if step.Action != c.action || !strings.Contains(step.Reason.Message, c.says) || step.Object.Cluster != "west" {
				t.Errorf("got %s of %s, %s", step.Action, step.Object, step.Reason)
			}
			writes := step.Action == model.ActionCreate || step.Action == model.ActionTakeOver || step.Action == model.ActionUpdate
			if writes != (desired != nil) {
				t.Errorf("%s writes %v", step.Action, desired)
			}
			if writes && model.IdentityOf("hub", desired).OwnershipOf(desired) != model.ManagedHere {
				t.Errorf("what is written has labels %v", desired.GetLabels())
			}
		})
	}
}

var now = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

func managedBy(live *unstructured.Unstructured, hub string) *unstructured.Unstructured {
	live.SetLabels(model.IdentityOf(hub, live).Labels())
	return live
}

func readyCluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "west"},
		Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}},
	}
}

func TestHold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Observed)
		code   passage.Code
		says   string
	}{
		"nothing":                {func(*Observed) {}, "", ""},
		"suspended":              {func(o *Observed) { o.Work.Spec.SuspendDispatching = ptr.To(true) }, model.ReasonSuspended, "nothing is written to cluster west while the policy suspends dispatching"},
		"not connected":          {func(o *Observed) { o.Connected = false }, model.ReasonUnreachable, "waiting until cluster west can be reached"},
		"not reachable":          {unreachable, model.ReasonUnreachable, "waiting until cluster west can be reached: connection refused"},
		"the cluster leaves":     {func(o *Observed) { o.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }, model.ReasonLeaving, "cluster west is leaving the hub"},
		"the cluster is gone":    {func(o *Observed) { o.Cluster = nil }, model.ReasonLeaving, "has been deleted"},
		"deleted":                {deleted, "", ""},
		"deleted, not reachable": {func(o *Observed) { deleted(o); unreachable(o) }, model.ReasonUnreachable, "connection refused"},
		"deleted, and gone":      {func(o *Observed) { deleted(o); o.Cluster = nil }, "", ""},
		"deleted, and suspended": {func(o *Observed) { deleted(o); o.Work.Spec.SuspendDispatching = ptr.To(true) }, "", ""},
		"deleted, abandoned":     {func(o *Observed) { deleted(o); unreachable(o); abandoned(o) }, "", ""},
		"deleted, to be kept": {func(o *Observed) {
			deleted(o)
			unreachable(o)
			o.Work.Annotations = map[string]string{model.AnnotationKeep: "true"}
		}, "", ""},
		"deleted, not reachable, and the binding is abandoned": {func(o *Observed) {
			deleted(o)
			unreachable(o)
			abandonedBinding(o)
		}, "", ""},
		"not deleted, not reachable, and the binding is abandoned": {func(o *Observed) {
			unreachable(o)
			abandonedBinding(o)
		}, model.ReasonUnreachable, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Hub: "hub", Cluster: readyCluster(), Connected: true, Work: &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west"}}}
			c.change(&o)
			hold := Hold(o)
			if hold == nil {
				hold = &passage.Reason{}
			}
			if hold.Code != c.code || !strings.Contains(hold.Message, c.says) {
				t.Errorf("got %v", hold)
			}
		})
	}
}

func unreachable(o *Observed) {
	o.Cluster.Status.Conditions[0].Status, o.Cluster.Status.Conditions[0].Message = metav1.ConditionFalse, "connection refused"
}

func abandonedBinding(o *Observed) {
	o.Binding = model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "it-deployment"})
	o.Binding.SetAnnotations(map[string]string{model.AnnotationAbandon: "true"})
}

func deleted(o *Observed) { o.Work.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }

func abandoned(o *Observed) {
	o.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	o.Cluster.Annotations = map[string]string{model.AnnotationAbandon: "true"}
}

// A Work that is being deleted deletes what it has made, unless its policy, its cluster, its binding or an abort says otherwise.
func TestPlanOfADeletion(t *testing.T) {
	annotated := func(key string) func(*Observed) {
		return func(o *Observed) { o.Work.Annotations = map[string]string{key: "true"} }
	}
	leaving := func(o *Observed) { o.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
	wanted := func(o *Observed) {
		o.Binding = model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "it-deployment"})
		o.Binding.SetUID("b")
		o.Binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
		model.Claim(o.Binding, model.PolicyKey{Namespace: "shop", Name: "p"})
		o.Work.Labels = map[string]string{model.LabelBinding: "b"}
	}
	for name, c := range map[string]struct {
		change []func(*Observed)
		live   func(*unstructured.Unstructured) *unstructured.Unstructured
		action passage.Action
	}{
		"deleted":                                                  {nil, nil, model.ActionDelete},
		"preserved by the policy":                                  {[]func(*Observed){func(o *Observed) { o.Work.Spec.PreserveResourcesOnDeletion = ptr.To(true) }}, nil, model.ActionOrphan},
		"aborted, and not changed by takeover":                     {[]func(*Observed){annotated(model.AnnotationRestore)}, nil, model.ActionOrphan},
		"another Work follows":                                     {[]func(*Observed){annotated(model.AnnotationKeep)}, nil, model.ActionKeep},
		"the binding still wants it":                               {[]func(*Observed){wanted}, nil, model.ActionKeep},
		"the binding wants it, cluster leaves":                     {[]func(*Observed){wanted, leaving}, nil, model.ActionOrphan},
		"the binding is being deleted too":                         {[]func(*Observed){wanted, func(o *Observed) { o.Binding.SetDeletionTimestamp(ptr.To(metav1.NewTime(now))) }}, nil, model.ActionDelete},
		"made for another binding":                                 {[]func(*Observed){wanted, func(o *Observed) { o.Binding.SetUID("c") }}, nil, model.ActionDelete},
		"the binding is abandoned, and the cluster can be reached": {[]func(*Observed){abandonedBinding}, nil, model.ActionDelete},
		"the cluster leaves":                                       {[]func(*Observed){leaving}, nil, model.ActionOrphan},
		"the cluster leaves, resources deleted":                    {[]func(*Observed){leaving, func(o *Observed) { o.Cluster.Annotations = map[string]string{model.AnnotationDeleteResources: "true"} }}, nil, model.ActionDelete},
		"not there":                                                {nil, func(*unstructured.Unstructured) *unstructured.Unstructured { return nil }, model.ActionNone},
		"not managed any more": {nil, func(live *unstructured.Unstructured) *unstructured.Unstructured {
			live.SetLabels(nil)
			return live
		}, model.ActionNone},
		"managed by another hub": {nil, func(live *unstructured.Unstructured) *unstructured.Unstructured { return managedBy(live, "another") }, model.ActionNone},
		"being deleted already": {nil, func(live *unstructured.Unstructured) *unstructured.Unstructured {
			live.SetDeletionTimestamp(ptr.To(metav1.NewTime(now)))
			return live
		}, model.ActionNone},
	} {
		t.Run(name, func(t *testing.T) {
			live := managedBy(adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 2}"), "hub")
			if c.live != nil {
				live = c.live(live)
			}
			o := Observed{Hub: "hub", Cluster: readyCluster(), Connected: true, Work: &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west"}}}
			deleted(&o)
			for _, change := range c.change {
				change(&o)
			}
			object := Object{Manifest: adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 2}"), Live: live}
			if got := Decide(o, object).Action; got != c.action {
				t.Errorf("got %s, want %s", got, c.action)
			}
		})
	}
}

// Only the object that was taken over is restored, and with the replicas that an autoscaler has set since.
func TestPlanOfARestore(t *testing.T) {
	original := adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {uid: one, labels: {team: a}}\nspec: {replicas: 2, image: mine}")
	live := managedBy(adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {uid: one}\nspec: {replicas: 7, image: theirs}"), "hub")
	recreated := live.DeepCopy()
	recreated.SetUID("two")
	for name, c := range map[string]struct {
		live, original *unstructured.Unstructured
		autoscaled     bool
		action         passage.Action
		reason         passage.Code
		replicas       int64
	}{
		"changed by the takeover":     {live, original, false, model.ActionRestore, "Released", 2},
		"changed, and autoscaled":     {live, original, true, model.ActionRestore, "Released", 7},
		"not changed by the takeover": {live, nil, false, model.ActionOrphan, "Released", 0},
		"created again since":         {recreated, original, false, model.ActionOrphan, "Recreated", 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{
				Hub: "hub", Cluster: readyCluster(), Connected: true,
				Work: &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Annotations: map[string]string{model.AnnotationRestore: "true"}}},
			}
			deleted(&o)
			step := Decide(o, Object{Manifest: live, Live: c.live, Original: c.original, Autoscaled: c.autoscaled})
			if step.Action != c.action || step.Reason.Code != c.reason {
				t.Fatalf("got %s, %+v", step.Action, step.Reason)
			}
			if c.replicas == 0 {
				if step.Desired != nil {
					t.Errorf("it writes %v", step.Desired)
				}
				return
			}
			if got := int64(manifest.Replicas(step.Desired)); got != c.replicas || step.Desired.GetLabels()[model.LabelHub] != "" || step.Desired.GetLabels()["team"] != "a" {
				t.Errorf("it writes %v", step.Desired)
			}
		})
	}
}

// The message names the last client that has written the object, besides Fairlead and the writers of its status.
func TestContestedReason(t *testing.T) {
	entry := func(manager, subresource string, minute int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: now.Add(time.Duration(minute) * time.Minute)}}
	}
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		who     string
	}{
		"nothing is known":    {nil, "another client"},
		"only Fairlead":       {[]metav1.ManagedFieldsEntry{entry(model.FieldOwner, "", 1)}, "another client"},
		"only a status":       {[]metav1.ManagedFieldsEntry{entry("kube-controller-manager", "status", 1)}, "another client"},
		"the last of two":     {[]metav1.ManagedFieldsEntry{entry("argocd", "", 2), entry("kubectl", "", 1)}, "argocd"},
		"before Fairlead":     {[]metav1.ManagedFieldsEntry{entry("argocd", "", 1), entry(model.FieldOwner, "", 2)}, "argocd"},
		"one without a time":  {[]metav1.ManagedFieldsEntry{{Manager: "old"}, entry("argocd", "", 1)}, "argocd"},
		"only without a time": {[]metav1.ManagedFieldsEntry{{Manager: "old"}}, "another client"},
	} {
		t.Run(name, func(t *testing.T) {
			live := adoptiontest.Object(t, "ConfigMap v1")
			live.SetManagedFields(c.entries)
			if got := contestedReason("west", live); got.Code != model.ReasonContested || !strings.Contains(got.Message, "and "+c.who+" keeps changing the object") {
				t.Errorf("got %s", got)
			}
		})
	}
}

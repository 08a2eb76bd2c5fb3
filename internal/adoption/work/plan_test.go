package work

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestSettle(t *testing.T) {
	who := model.Identity{Hub: "h", Object: "w"}
	desired := func(resolution string) *unstructured.Unstructured {
		return adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {annotations: {work.karmada.io/conflict-resolution: "+resolution+"}}\nspec: {replicas: 2, image: a}")
	}
	marked := func(i model.Identity, text string) *unstructured.Unstructured {
		live := adoptiontest.Object(t, "Deployment apps/v1\n"+text)
		live.SetLabels(i.Labels())
		return live
	}
	// written is what is remembered of a write after which the object looked like this.
	written := func(m, live *unstructured.Unstructured) Record {
		record, err := newRecord(m, live)
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	const defaulted = "spec: {replicas: 2, image: a, strategy: Rolling}"
	asWritten := written(desired("abort"), marked(who, defaulted))
	leftToCluster := desired("abort")
	leftToCluster.SetAnnotations(model.MergeKeys(leftToCluster.GetAnnotations(), nil, map[string]string{manifest.AnnotationRetainReplicas: "true"}))
	labelled := func(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
		u.SetLabels(model.MergeKeys(u.GetLabels(), nil, map[string]string{key: value}))
		return u
	}
	claim := func(text string) *unstructured.Unstructured {
		live := adoptiontest.Object(t, "PersistentVolumeClaim v1\n"+text)
		live.SetLabels(who.Labels())
		return live
	}
	going := marked(who, defaulted)
	going.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2027-01-01T00:00:00Z"
	for name, c := range map[string]struct {
		manifest, live *unstructured.Unstructured
		before         Record
		scaled         bool
		action         passage.Action
		says           string
	}{
		"not there":                        {manifest: desired("abort"), action: model.ActionCreate},
		"nobody's, and nobody asks for it": {manifest: desired("abort"), live: adoptiontest.Object(t, "Deployment apps/v1\n"+defaulted), action: model.ActionLeave, says: "Deployment shop/it exists in cluster west already, and is left alone: set conflictResolution of the policy to Overwrite, or annotate the resource with work.karmada.io/conflict-resolution: overwrite"},
		"nobody's, to be taken over":       {manifest: desired("overwrite"), live: adoptiontest.Object(t, "Deployment apps/v1\n"+defaulted), action: model.ActionTakeOver},
		"with a copied label only":         {manifest: desired("abort"), live: adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {labels: {karmada.io/managed: 'true'}}"), action: model.ActionLeave},
		"another hub's":                    {manifest: desired("overwrite"), live: marked(model.Identity{Hub: "g", Object: "w"}, defaulted), action: model.ActionLeave, says: "managed by another hub"},
		"with marks of another object":     {manifest: desired("abort"), live: marked(model.Identity{Hub: "h", Object: "x"}, defaulted), action: model.ActionLeave, says: "exists in cluster"},
		"as it was written":                {manifest: desired("abort"), live: marked(who, defaulted), before: asWritten, action: model.ActionNone},
		"as it was written, status apart":  {manifest: desired("abort"), live: marked(who, defaulted+"\nstatus: {replicas: 2}"), before: asWritten, action: model.ActionNone},
		"nothing is remembered":            {manifest: desired("abort"), live: marked(who, defaulted), action: model.ActionUpdate},
		"changed on the hub":               {manifest: adoptiontest.Object(t, "Deployment apps/v1\nspec: {image: b}"), live: marked(who, defaulted), before: asWritten, action: model.ActionUpdate, says: "changed on the hub"},
		"changed in the cluster":           {manifest: desired("abort"), live: marked(who, "spec: {replicas: 2, image: x, strategy: Rolling}"), before: asWritten, action: model.ActionUpdate, says: "changed it in the cluster"},
		"something added in the cluster":   {manifest: desired("abort"), live: marked(who, "spec: {replicas: 2, image: a, strategy: Rolling, extra: 1}"), before: asWritten, action: model.ActionUpdate},
		"scaled by somebody":               {manifest: desired("abort"), live: marked(who, "spec: {replicas: 9, image: a, strategy: Rolling}"), before: asWritten, action: model.ActionUpdate},
		"scaled by who may": {
			manifest: desired("abort"), live: marked(who, "spec: {replicas: 9, image: a, strategy: Rolling}"),
			before: written(desired("abort"), marked(who, defaulted)), scaled: true, action: model.ActionNone,
		},
		"scaled, and left to the cluster": {
			manifest: leftToCluster, live: marked(who, "spec: {replicas: 9, image: a, strategy: Rolling}"),
			before: written(leftToCluster, marked(who, defaulted)), action: model.ActionNone,
		},
		"taken over, and no longer to be": {
			manifest: desired("abort"), live: marked(who, defaulted), before: written(desired("overwrite"), marked(who, defaulted)), action: model.ActionNone,
		},
		"labelled and annotated by others": {
			manifest: desired("abort"), before: asWritten, action: model.ActionNone,
			live: labelled(marked(who, "metadata: {annotations: {deployment.kubernetes.io/revision: '1'}}\n"+defaulted), "team", "x"),
		},
		"a label changed in the cluster": {
			manifest: labelled(desired("abort"), "app", "a"), live: labelled(marked(who, defaulted), "app", "b"), action: model.ActionUpdate,
			before: written(labelled(desired("abort"), "app", "a"), labelled(marked(who, defaulted), "app", "a")), says: "changed it in the cluster",
		},
		"given a volume": {
			manifest: adoptiontest.Object(t, "PersistentVolumeClaim v1\nspec: {}"), live: claim("spec: {volumeName: v}"), action: model.ActionNone,
			before: written(adoptiontest.Object(t, "PersistentVolumeClaim v1\nspec: {}"), claim("spec: {}")),
		},
		"going": {manifest: desired("overwrite"), live: going, action: model.ActionAwait},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decide("west", c.manifest, c.live, who, c.before, c.scaled)
			if err != nil {
				t.Fatal(err)
			}
			if got.Action != c.action || !strings.Contains(got.Reason.Message, c.says) {
				t.Errorf("got %s, %s: %s", got.Action, got.Reason.Code, got.Reason.Message)
			}
			writes := got.Action == model.ActionCreate || got.Action == model.ActionTakeOver || got.Action == model.ActionUpdate
			if writes != (got.Desired != nil) {
				t.Errorf("%s writes %v", got.Action, got.Desired)
			}
			if writes && who.OwnershipOf(got.Desired) != model.ManagedHere {
				t.Errorf("what is written has labels %v", got.Desired.GetLabels())
			}
		})
	}
}

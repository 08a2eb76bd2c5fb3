package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/passage"
)

func TestSettle(t *testing.T) {
	who := identity{"h", "w"}
	manifest := func(resolution string) *unstructured.Unstructured {
		return object(t, "Deployment apps/v1\nmetadata: {annotations: {work.karmada.io/conflict-resolution: "+resolution+"}}\nspec: {replicas: 2, image: a}")
	}
	marked := func(i identity, text string) *unstructured.Unstructured {
		live := object(t, "Deployment apps/v1\n"+text)
		live.SetLabels(i.marks())
		return live
	}
	// written is what is remembered of a write after which the object looked like this.
	written := func(m, live *unstructured.Unstructured) Record {
		record, err := remember(m, live)
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	const defaulted = "spec: {replicas: 2, image: a, strategy: Rolling}"
	asWritten := written(manifest("abort"), marked(who, defaulted))
	leftToCluster := manifest("abort")
	leftToCluster.SetAnnotations(joined(leftToCluster.GetAnnotations(), nil, map[string]string{AnnotationRetainReplicas: "true"}))
	labelled := func(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
		u.SetLabels(joined(u.GetLabels(), nil, map[string]string{key: value}))
		return u
	}
	claim := func(text string) *unstructured.Unstructured {
		live := object(t, "PersistentVolumeClaim v1\n"+text)
		live.SetLabels(who.marks())
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
		"not there":                        {manifest: manifest("abort"), action: ActionCreate},
		"nobody's, and nobody asks for it": {manifest: manifest("abort"), live: object(t, "Deployment apps/v1\n"+defaulted), action: ActionLeave, says: "Deployment shop/it exists in cluster west already, and is left alone: set conflictResolution of the policy to Overwrite, or annotate the resource with work.karmada.io/conflict-resolution: overwrite"},
		"nobody's, to be taken over":       {manifest: manifest("overwrite"), live: object(t, "Deployment apps/v1\n"+defaulted), action: ActionTakeOver},
		"with a copied label only":         {manifest: manifest("abort"), live: object(t, "Deployment apps/v1\nmetadata: {labels: {karmada.io/managed: 'true'}}"), action: ActionLeave},
		"another hub's":                    {manifest: manifest("overwrite"), live: marked(identity{"g", "w"}, defaulted), action: ActionLeave, says: "managed by another hub"},
		"with marks of another object":     {manifest: manifest("abort"), live: marked(identity{"h", "x"}, defaulted), action: ActionLeave, says: "exists in cluster"},
		"as it was written":                {manifest: manifest("abort"), live: marked(who, defaulted), before: asWritten, action: ActionNone},
		"as it was written, status apart":  {manifest: manifest("abort"), live: marked(who, defaulted+"\nstatus: {replicas: 2}"), before: asWritten, action: ActionNone},
		"nothing is remembered":            {manifest: manifest("abort"), live: marked(who, defaulted), action: ActionUpdate},
		"changed on the hub":               {manifest: object(t, "Deployment apps/v1\nspec: {image: b}"), live: marked(who, defaulted), before: asWritten, action: ActionUpdate, says: "changed on the hub"},
		"changed in the cluster":           {manifest: manifest("abort"), live: marked(who, "spec: {replicas: 2, image: x, strategy: Rolling}"), before: asWritten, action: ActionUpdate, says: "changed it in the cluster"},
		"something added in the cluster":   {manifest: manifest("abort"), live: marked(who, "spec: {replicas: 2, image: a, strategy: Rolling, extra: 1}"), before: asWritten, action: ActionUpdate},
		"scaled by somebody":               {manifest: manifest("abort"), live: marked(who, "spec: {replicas: 9, image: a, strategy: Rolling}"), before: asWritten, action: ActionUpdate},
		"scaled by who may": {
			manifest: manifest("abort"), live: marked(who, "spec: {replicas: 9, image: a, strategy: Rolling}"),
			before: written(manifest("abort"), marked(who, defaulted)), scaled: true, action: ActionNone,
		},
		"scaled, and left to the cluster": {
			manifest: leftToCluster, live: marked(who, "spec: {replicas: 9, image: a, strategy: Rolling}"),
			before: written(leftToCluster, marked(who, defaulted)), action: ActionNone,
		},
		"taken over, and no longer to be": {
			manifest: manifest("abort"), live: marked(who, defaulted), before: written(manifest("overwrite"), marked(who, defaulted)), action: ActionNone,
		},
		"labelled and annotated by others": {
			manifest: manifest("abort"), before: asWritten, action: ActionNone,
			live: labelled(marked(who, "metadata: {annotations: {deployment.kubernetes.io/revision: '1'}}\n"+defaulted), "team", "x"),
		},
		"a label changed in the cluster": {
			manifest: labelled(manifest("abort"), "app", "a"), live: labelled(marked(who, defaulted), "app", "b"), action: ActionUpdate,
			before: written(labelled(manifest("abort"), "app", "a"), labelled(marked(who, defaulted), "app", "a")), says: "changed it in the cluster",
		},
		"given a volume": {
			manifest: object(t, "PersistentVolumeClaim v1\nspec: {}"), live: claim("spec: {volumeName: v}"), action: ActionNone,
			before: written(object(t, "PersistentVolumeClaim v1\nspec: {}"), claim("spec: {}")),
		},
		"going": {manifest: manifest("overwrite"), live: going, action: ActionAwait},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := settle("west", c.manifest, c.live, who, c.before, c.scaled)
			if err != nil {
				t.Fatal(err)
			}
			if got.action != c.action || !strings.Contains(got.reason.Message, c.says) {
				t.Errorf("got %s, %s: %s", got.action, got.reason.Code, got.reason.Message)
			}
			writes := got.action == ActionCreate || got.action == ActionTakeOver || got.action == ActionUpdate
			if writes != (got.want != nil) {
				t.Errorf("%s writes %v", got.action, got.want)
			}
			if writes && who.of(got.want) != ours {
				t.Errorf("what is written has labels %v", got.want.GetLabels())
			}
		})
	}
}

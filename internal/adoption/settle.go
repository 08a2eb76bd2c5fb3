package adoption

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// What is done about an object in a cluster.
const (
	// ActionCreate makes it.
	ActionCreate passage.Action = "create"
	// ActionTakeOver writes over one that the cluster ran already.
	ActionTakeOver passage.Action = "take over"
	// ActionUpdate writes what has changed on the hub, or puts back what somebody has changed in the cluster.
	ActionUpdate passage.Action = "update"
	// ActionAwait waits until one that is going is gone.
	ActionAwait passage.Action = "await"
	// ActionLeave leaves one alone that is somebody else's.
	ActionLeave passage.Action = "leave"
	// ActionNone is for one that is as it should be.
	ActionNone passage.Action = "unchanged"
)

// ReasonDrifted is why an object is written again that has not changed on the hub.
const ReasonDrifted passage.Code = "Drifted"

// ReasonConflict is why an object is left alone.
const ReasonConflict passage.Code = "ResourceConflict"

// Record is what was last written to a cluster, and what became of it there.
type Record struct {
	// Manifest is the digest of what was written, and Object that of what the cluster made of it.
	Manifest, Object string
}

// verdict is what is to be done about an object in a cluster.
type verdict struct {
	action passage.Action
	reason passage.Reason
	// want is what is to be written.
	want *unstructured.Unstructured
}

// settle decides about one object of a Work. Nobody's object is taken over only if somebody asks for that, and another hub's
// never.
func settle(cluster string, manifest, live *unstructured.Unstructured, who identity, before Record, scaled bool) (verdict, error) {
	scaled = scaled || manifest.GetAnnotations()[AnnotationRetainReplicas] == "true"
	if live == nil {
		want := sent(manifest)
		want.SetLabels(joined(want.GetLabels(), nil, who.marks()))
		return verdict{action: ActionCreate, want: want, reason: passage.Because("Missing", "it is not there")}, nil
	}
	name := fmt.Sprintf("%s %s", live.GetKind(), nameOf(live))
	if live.GetDeletionTimestamp() != nil {
		return verdict{action: ActionAwait, reason: passage.Because("BeingDeleted", "%s in cluster %s is being deleted, and is made anew when it is gone", name, cluster)}, nil
	}
	want := retain(manifest, live, who.marks(), scaled)
	switch who.of(live) {
	case anotherHubs:
		return verdict{action: ActionLeave, reason: passage.Because(ReasonConflict,
			"%s in cluster %s is managed by another hub, and is left alone: release it there, or delete it here", name, cluster)}, nil
	case nobodys:
		if manifest.GetAnnotations()[AnnotationConflictResolution] != annotationOf(policyv1alpha1.ConflictOverwrite) {
			return verdict{action: ActionLeave, reason: passage.Because(ReasonConflict,
				"%s exists in cluster %s already, and is left alone: set conflictResolution of the policy to Overwrite, or annotate the resource with %s: overwrite, to take it over; or delete it in the cluster",
				name, cluster, AnnotationConflictResolution)}, nil
		}
		return verdict{action: ActionTakeOver, want: want, reason: passage.Because("Exists", "it is there, and is to be taken over")}, nil
	}
	now, err := remember(manifest, live)
	if err != nil {
		return verdict{}, err
	}
	switch {
	case before.Manifest != now.Manifest:
		return verdict{action: ActionUpdate, want: want, reason: passage.Because("Changed", "it has changed on the hub")}, nil
	case before.Object != now.Object, !scaled && rescaled(manifest, live):
		return verdict{action: ActionUpdate, want: want, reason: passage.Because(ReasonDrifted, "somebody has changed it in the cluster")}, nil
	}
	return verdict{action: ActionNone}, nil
}

// rescaled tells that an object has another number of replicas than its manifest says.
func rescaled(manifest, live *unstructured.Unstructured) bool {
	said, found, err := unstructured.NestedInt64(manifest.Object, "spec", "replicas")
	if !found || err != nil {
		return false
	}
	now, found, err := unstructured.NestedInt64(live.Object, "spec", "replicas")
	return !found || err != nil || now != said
}

func nameOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

// remember is what is known of a manifest that was written, and of the object that the cluster made of it.
func remember(manifest, live *unstructured.Unstructured) (Record, error) {
	said := sent(manifest)
	text, err := digestOf(said.Object)
	if err != nil {
		return Record{}, err
	}
	content, err := digestOf(contentOf(live, said))
	return Record{Manifest: text, Object: content}, err
}

// contentOf is all that a manifest could have a say in: everything but the status, the metadata of others, and what the
// cluster assigns. Replicas that the manifest says are looked at apart, for others may be entitled to change them.
func contentOf(live, said *unstructured.Unstructured) map[string]any {
	rest := live.DeepCopy()
	for _, path := range assignedPaths[live.GroupVersionKind().GroupKind().String()] {
		if _, found, err := unstructured.NestedFieldNoCopy(said.Object, path...); err == nil && !found {
			unstructured.RemoveNestedField(rest.Object, path...)
		}
	}
	if _, found, err := unstructured.NestedInt64(said.Object, "spec", "replicas"); err == nil && found {
		unstructured.RemoveNestedField(rest.Object, "spec", "replicas")
	}
	content := map[string]any{
		"labels": picked(live.GetLabels(), said.GetLabels()), "annotations": picked(live.GetAnnotations(), said.GetAnnotations()),
	}
	for field, value := range rest.Object {
		if field != "metadata" && field != "status" {
			content[field] = value
		}
	}
	return content
}

func picked(live, want map[string]string) map[string]string {
	all := map[string]string{}
	for key := range want {
		if value, found := live[key]; found {
			all[key] = value
		}
	}
	return all
}

func digestOf(content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("digest an object: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), nil
}

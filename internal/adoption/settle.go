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
	// scaled tells that the number of replicas is left to the cluster.
	scaled bool
}

// settle decides about one object of a Work. Nobody's object is taken over only if somebody asks for that, and another hub's
// never.
func settle(cluster string, manifest, live *unstructured.Unstructured, who identity, before Record, scaled bool) (verdict, error) {
	scaled = scaled || manifest.GetAnnotations()[AnnotationRetainReplicas] == "true"
	v, err := decide(cluster, manifest, live, who, before, scaled)
	v.scaled = scaled
	return v, err
}

func decide(cluster string, manifest, live *unstructured.Unstructured, who identity, before Record, scaled bool) (verdict, error) {
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
	case anotherWorks:
		return verdict{action: ActionUpdate, want: want, reason: passage.Because("Renamed", "it was part of another Work")}, nil
	}
	text, err := digestOf(manifest.Object)
	if err != nil {
		return verdict{}, err
	}
	content, err := contentOf(live, want, scaled)
	if err != nil {
		return verdict{}, err
	}
	switch {
	case before.Manifest != text:
		return verdict{action: ActionUpdate, want: want, reason: passage.Because("Changed", "it has changed on the hub")}, nil
	case before.Object != content:
		return verdict{action: ActionUpdate, want: want, reason: passage.Because("Drifted", "somebody has changed it in the cluster")}, nil
	}
	return verdict{action: ActionNone}, nil
}

func nameOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

// contentOf is a digest of all that a manifest could have a say in: everything but the status and the metadata of others.
func contentOf(live, want *unstructured.Unstructured, scaled bool) (string, error) {
	content := map[string]any{
		"labels": picked(live.GetLabels(), want.GetLabels()), "annotations": picked(live.GetAnnotations(), want.GetAnnotations()),
	}
	for field, value := range live.Object {
		if field != "metadata" && field != "status" {
			content[field] = value
		}
	}
	if spec, ok := content["spec"].(map[string]any); ok && scaled {
		reduced := make(map[string]any, len(spec))
		for field, value := range spec {
			if field != "replicas" {
				reduced[field] = value
			}
		}
		content["spec"] = reduced
	}
	return digestOf(content)
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

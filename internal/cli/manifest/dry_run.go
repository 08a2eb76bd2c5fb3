package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
)

// lastApplied is where `kubectl apply` keeps what it applied, to find out what is no longer in a manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// DryRunApply is the resource that there would be if a manifest were applied in the way that the one before it was. The API
// server tries it without doing it, so that defaults, merging and refusals are its own.
func DryRunApply(ctx context.Context, r connect.Resource, from Manifest, manager string) (*unstructured.Unstructured, error) {
	object := from.Object.DeepCopy()
	if ns := object.GetNamespace(); ns != "" && ns != r.Key.Namespace {
		return nil, console.UsageErrorf("%s in %s is of namespace %s, and not of %s; give -n %s", r, from.Source, ns, r.Key.Namespace, ns)
	}
	object.SetNamespace(r.Key.Namespace)
	removeServerFields(object)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := r.Cluster.Client.Get(ctx, r.Key, live)
	strict := client.WithFieldValidation(r.Cluster.Client, metav1.FieldValidationStrict)
	switch applied := applyManager(live, manager); {
	case apierrors.IsNotFound(err):
		err = strict.Create(ctx, object, client.DryRunAll)
		live = object
	case err != nil:
	case applied != "":
		err = strict.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.FieldOwner(applied))
		live = object
	default:
		var patch []byte
		if patch, err = threeWayPatch(live, object); err == nil {
			err = strict.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
		}
	}
	if apierrors.IsNotFound(err) && from.HasNamespace(r.Key.Namespace) {
		// The API server cannot try it before the namespace exists.
		object = from.Object.DeepCopy()
		object.SetNamespace(r.Key.Namespace)
		return object, nil
	}
	if err != nil {
		return nil, dryRunError(r, from, err)
	}
	return live, nil
}

// removeServerFields removes what a manifest has that was made from what the cluster had.
func removeServerFields(object *unstructured.Unstructured) {
	delete(object.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
}

// applyManager is who applies the object on the server's side: the one that is given, or the one that does. Empty: nobody.
func applyManager(live *unstructured.Unstructured, given string) string {
	if given != "" {
		return given
	}
	if _, found := live.GetAnnotations()[lastApplied]; found {
		return ""
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return entry.Manager
		}
	}
	return ""
}

// threeWayPatch is the patch that `kubectl apply` would send: what the manifest has, and what it has no longer. What somebody
// else has added stays.
func threeWayPatch(live, object *unstructured.Unstructured) ([]byte, error) {
	original := []byte(live.GetAnnotations()[lastApplied])
	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	// As kubectl does, which writes itself into them: without any, all would seem to be given up.
	object = object.DeepCopy()
	if metadata, ok := object.Object["metadata"].(map[string]any); ok && metadata["annotations"] == nil {
		metadata["annotations"] = map[string]any{}
	}
	modified, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
}

func dryRunError(r connect.Resource, from Manifest, err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%s in %s is of apiVersion %s, which the cluster does not serve: make it %s, or run `fairlead crds install`",
			r, from.Source, from.Object.GetAPIVersion(), r.Mapping.GroupVersionKind.GroupVersion())
	case apierrors.IsForbidden(err):
		return fmt.Errorf("to plan for %s the API server tries it without doing it, which takes the permission to patch: %w", from.Source, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s in %s cannot be applied: %w; leave those fields to who has them, or plan as them with --field-manager",
			r, from.Source, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%s in %s is not accepted: %s; correct it there", r, from.Source, trimStrictError(err))
	}
	return fmt.Errorf("try %s without doing it: %w", from.Source, err)
}

// strictErrorPrefix is before what the API server says of fields that it does not know, and after all of what was sent.
const strictErrorPrefix = "strict decoding error: "

// trimStrictError is what an error comes down to.
func trimStrictError(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, strictErrorPrefix); at >= 0 {
		return text[at+len(strictErrorPrefix):]
	}
	return text
}

package foreign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/fairlead/fairlead/api/fairlead"
)

// FieldOwner of the condition that says that a passage holds, and of the removal of another system's finalizers.
const FieldOwner = "fairlead/hold"

// maxNote is the longest text of an event.
const maxNote = 1024

// Reporter says on the objects that start a passage that the passage holds, and no longer once it goes on.
type Reporter struct {
	log      logr.Logger
	objects  dynamic.Interface
	metadata metadata.Interface
	recorder events.EventRecorder
	// announced is what the last event on each object says, and written what the condition was that was written last. If the other
	// controller removes it, it is not written again.
	mu                 sync.Mutex
	announced, written map[types.UID]string
}

// announce tells whether an event on an object is due, and notes it.
func (r *Reporter) announce(object types.UID, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	due := r.announced[object] != text
	r.announced[object] = text
	return due
}

func (r *Reporter) hasWritten(object types.UID, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written[object] == text
}

func (r *Reporter) recordWritten(object types.UID, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[object] = text
}

// forget has an object reported anew.
func (r *Reporter) forget(object types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.announced, object)
	delete(r.written, object)
}

// NewReporter records events until the context ends.
func NewReporter(ctx context.Context, config *rest.Config, log logr.Logger) (*Reporter, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &Reporter{log: log, announced: map[types.UID]string{}, written: map[types.UID]string{}}
	if r.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if r.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, broadcaster.Shutdown)
	r.recorder = broadcaster.NewRecorder(runtime.NewScheme(), "fairlead.dev/operator")
	return r, nil
}

// Held says why the passage of a system holds, once on each object. What fails is tried again by the next call.
func (r *Reporter) Held(ctx context.Context, system System, message, action string) error {
	note := message + "; " + action
	return r.forEachStart(ctx, system, func(resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
		if r.announce(object.GetUID(), note) {
			r.recorder.Eventf(object, nil, corev1.EventTypeWarning, fairlead.ReasonForeignController, "Hold", "%s", note[:min(len(note), maxNote)])
		}
		if r.hasWritten(object.GetUID(), note) {
			return nil
		}
		err := r.setCondition(ctx, resource, object, note)
		if apierrors.IsConflict(err) {
			return nil // at the next look
		}
		if err == nil {
			r.recordWritten(object.GetUID(), note)
		}
		return err
	})
}

// Released removes what Held has said.
func (r *Reporter) Released(ctx context.Context, system System) error {
	return r.forEachStart(ctx, system, func(resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
		r.forget(object.GetUID())
		return r.setCondition(ctx, resource, object, "")
	})
}

// ReleaseFinalizers removes the finalizers of a system whose passage is taken over: nobody else would, and what is deleted would
// wait for ever.
func (r *Reporter) ReleaseFinalizers(ctx context.Context, system System) error {
	var errs []error
	for _, kind := range system.Kinds {
		if len(system.Finalizers) == 0 {
			break
		}
		errs = append(errs, r.releaseFinalizers(ctx, system, kind))
	}
	return errors.Join(errs...)
}

func (r *Reporter) releaseFinalizers(ctx context.Context, system System, kind Kind) error {
	var failed failures
	for _, version := range kind.Versions {
		resource := r.metadata.Resource(kind.WithVersion(version))
		options := metav1.ListOptions{Limit: pageSize}
		for {
			list, err := resource.List(ctx, options)
			if apierrors.IsNotFound(err) {
				break
			}
			if err != nil {
				return fmt.Errorf("list %s: %w", kind.GroupResource, err)
			}
			for i := range list.Items {
				object := &list.Items[i]
				kept := slices.DeleteFunc(slices.Clone(object.Finalizers), func(name string) bool { return slices.Contains(system.Finalizers, name) })
				if len(kept) == len(object.Finalizers) {
					continue
				}
				patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": object.ResourceVersion, "finalizers": kept}})
				if err != nil {
					return err
				}
				_, err = resource.Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldOwner})
				if err != nil && !apierrors.IsNotFound(err) {
					failed.add(fmt.Errorf("remove the finalizers of the %s from %s %s/%s: %w", system.Name, kind.Kind, object.Namespace, object.Name, err))
					if failed.isUnavailable() {
						return failed.err()
					}
					continue
				}
				r.log.Info("finalizers of another controller removed", "passage", system.Passage, "kind", kind.Kind, "namespace", object.Namespace, "name", object.Name)
			}
			if options.Continue = list.Continue; options.Continue == "" {
				return failed.err()
			}
		}
	}
	return failed.err()
}

// forEachStart visits the objects of the kinds that start a passage.
func (r *Reporter) forEachStart(ctx context.Context, system System, visit func(schema.GroupVersionResource, *unstructured.Unstructured) error) error {
	var errs []error
	for _, kind := range system.Kinds {
		for _, version := range kind.Versions {
			if !kind.Starts {
				break
			}
			resource := kind.WithVersion(version)
			list, err := r.objects.Resource(resource).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("list %s: %w", kind.GroupResource, err))
				break
			}
			for i := range list.Items {
				errs = append(errs, visit(resource, &list.Items[i]))
			}
			break
		}
	}
	return errors.Join(errs...)
}

// setCondition sets the condition, or removes it if there is no message. A kind whose status is not served has none.
func (r *Reporter) setCondition(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, message string) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return nil // It is nothing that a condition can be added to.
	}
	at := slices.IndexFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == fairlead.ConditionHeld
	})
	switch {
	case message == "" && at < 0:
		return nil
	case message == "":
		conditions = slices.Delete(conditions, at, at+1)
	default:
		condition := map[string]any{
			"type": fairlead.ConditionHeld, "status": string(metav1.ConditionTrue), "reason": fairlead.ReasonForeignController, "message": message,
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}
		if at < 0 {
			conditions = append(conditions, condition)
			break
		}
		before, _ := conditions[at].(map[string]any)
		if before["message"] == message && before["status"] == condition["status"] {
			return nil
		}
		condition["lastTransitionTime"] = before["lastTransitionTime"]
		conditions[at] = condition
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": object.GetResourceVersion()}, "status": map[string]any{"conditions": conditions},
	})
	if err != nil {
		return err
	}
	_, err = r.objects.Resource(resource).Namespace(object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: FieldOwner}, "status")
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("write the status of %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

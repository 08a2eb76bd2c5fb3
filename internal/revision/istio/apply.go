package istio

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// apply applies steps of a plan.
func (r *reconciler) apply(ctx context.Context, o Observed, steps []passage.Step) error {
	defer kube.Span(&ctx, kube.StageApply)()
	for _, step := range steps {
		if err := r.applyStep(ctx, o, step); err != nil {
			return fmt.Errorf("%s %s: %w", step.Action, step.Object, err)
		}
		kube.LogStep(ctx, "revision", step)
		if reason, found := eventReasons[step.Object.Kind][step.Action]; found {
			r.Recorder.Eventf(o.Istio, related(step.Object), corev1.EventTypeNormal, reason, string(step.Action),
				"%s %s: %s", step.Action, step.Object, step.Reason.Message)
		}
	}
	return nil
}

func related(o passage.Object) client.Object {
	metadata := metav1.ObjectMeta{Name: o.Name}
	if o.Kind == v1.IstioRevisionTagKind {
		return &v1.IstioRevisionTag{ObjectMeta: metadata}
	}
	return &v1.IstioRevision{ObjectMeta: metadata}
}

func (r *reconciler) applyStep(ctx context.Context, o Observed, step passage.Step) error {
	if step.Object.Kind == v1.IstioRevisionTagKind {
		return r.applyDefaultTag(ctx, o, step)
	}
	have := o.revision(step.Object.Name)
	switch step.Action {
	case ActionRetire:
		retired := have.DeepCopy()
		if have.Written.Version != "" {
			retired.Spec = have.Written
		} // Otherwise another controller has written all of it.
		retired.OwnerReferences = desiredRevision(o.Istio, have.Spec.Version).OwnerReferences
		retired.Annotations = map[string]string{v1.AnnotationInactiveSince: formatTime(r.Now())}
		return r.write(ctx, o, retired)
	case ActionPrune:
		// A revision that has changed since the plan, such as its usage, needs a new plan.
		return client.IgnoreNotFound(r.Client.Delete(ctx, have.IstioRevision, client.Preconditions{
			UID: &have.UID, ResourceVersion: &have.ResourceVersion,
		}))
	}
	return r.write(ctx, o, desiredRevision(o.Istio, step.To))
}

// applyDefaultTag creates, changes or deletes the tag "default", unless that has changed since the plan.
func (r *reconciler) applyDefaultTag(ctx context.Context, o Observed, step passage.Step) error {
	have := o.DefaultTag
	if step.Action == ActionDelete {
		return client.IgnoreNotFound(r.Client.Delete(ctx, have, client.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}))
	}
	want := desiredDefaultTag(o.Istio)
	configuration := &tagConfiguration{
		TypeMetaApplyConfiguration:   *metav1ac.TypeMeta().WithKind(v1.IstioRevisionTagKind).WithAPIVersion(v1.GroupVersion.String()),
		ObjectMetaApplyConfiguration: metadataOf(want),
		Spec:                         want.Spec,
	}
	options := []client.ApplyOption{client.FieldOwner(v1.FieldOwner)}
	if have != nil {
		configuration.WithResourceVersion(have.ResourceVersion)
		options = append(options, client.ForceOwnership)
	}
	return r.Client.Apply(ctx, configuration, options...)
}

// write applies a revision conditionally: one that was changed or created since the plan is a conflict.
func (r *reconciler) write(ctx context.Context, o Observed, want *v1.IstioRevision) error {
	configuration, options := configurationOf(want), []client.ApplyOption{client.FieldOwner(v1.FieldOwner)}
	if have := o.revision(want.Name); have != nil {
		version, err := r.inheritFields(ctx, have.IstioRevision, want.Spec)
		if err != nil {
			return err
		}
		configuration.WithResourceVersion(version)
		options = append(options, client.ForceOwnership)
	}
	return r.Client.Apply(ctx, configuration, options...)
}

// inheritFields takes over fields of a revision that a Sail Operator has made, and returns the version of the revision after that.
func (r *reconciler) inheritFields(ctx context.Context, have *v1.IstioRevision, want v1.IstioRevisionSpec) (version string, err error) {
	patch, err := inheritedFields(have, want)
	if err != nil || patch == nil {
		return have.ResourceVersion, err
	}
	patched := have.DeepCopy()
	err = r.Client.Patch(ctx, patched, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(v1.FieldOwner))
	return patched.ResourceVersion, err
}

// eventReasons by the kind that a step is about.
var eventReasons = map[string]map[passage.Action]string{
	v1.IstioRevisionKind: {
		ActionCreate: "RevisionCreated",
		ActionUpdate: "RevisionUpdated",
		ActionAdopt:  "RevisionAdopted",
		ActionPrune:  "RevisionPruned",
	},
	v1.IstioRevisionTagKind: {
		ActionCreate: "TagCreated",
		ActionUpdate: "TagUpdated",
		ActionDelete: "TagDeleted",
	},
}

// tagConfiguration is the part of the IstioRevisionTag "default" that this passage owns.
type tagConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Spec                                   v1.IstioRevisionTagSpec `json:"spec"`
}

func (*tagConfiguration) IsApplyConfiguration() {}

// revisionConfiguration is the part of an IstioRevision that this passage owns.
type revisionConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Spec                                   v1.IstioRevisionSpec `json:"spec"`
}

func (*revisionConfiguration) IsApplyConfiguration() {}

func configurationOf(revision *v1.IstioRevision) *revisionConfiguration {
	metadata := metadataOf(revision)
	if since := revision.Annotations[v1.AnnotationInactiveSince]; since != "" {
		metadata.WithAnnotations(map[string]string{v1.AnnotationInactiveSince: since})
	}
	return &revisionConfiguration{
		TypeMetaApplyConfiguration:   *metav1ac.TypeMeta().WithKind(v1.IstioRevisionKind).WithAPIVersion(v1.GroupVersion.String()),
		ObjectMetaApplyConfiguration: metadata,
		Spec:                         revision.Spec,
	}
}

// metadataOf is the name of an object, and its owners.
func metadataOf(object metav1.Object) *metav1ac.ObjectMetaApplyConfiguration {
	metadata := metav1ac.ObjectMeta().WithName(object.GetName())
	for _, owner := range object.GetOwnerReferences() {
		// Without blockOwnerDeletion, which would need a permission on the owner's finalizers in some clusters.
		metadata.WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).WithUID(owner.UID).
			WithController(ptr.Deref(owner.Controller, false)))
	}
	return metadata
}
